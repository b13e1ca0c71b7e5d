// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "wire/proxy_v2.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sodium.h>

#include <charconv>
#include <cstring>

namespace autodl {
namespace {

constexpr std::string_view kSignature("\r\n\r\n\0\r\nQUIT\n", 12);
constexpr unsigned char kVersionProxy = 0x21;
constexpr unsigned char kTcp4 = 0x11;
constexpr unsigned char kTcp6 = 0x21;
constexpr unsigned char kTlvKind = 0xE0;
constexpr unsigned char kTlvHmac = 0xE1;
constexpr unsigned char kTlvNonce = 0xE2;
constexpr std::size_t kHmacBytes = crypto_auth_hmacsha256_BYTES;
constexpr std::size_t kHmacTlvBytes = 3 + kHmacBytes;
constexpr std::size_t kAddressBytes4 = 12;
constexpr std::size_t kAddressBytes6 = 36;

static_assert(crypto_auth_hmacsha256_KEYBYTES == kRunKeyBytes);

Error bad_header(std::string message) {
  return Error(ErrorKind::kInvalid, "bad_proxy_header", "PROXY header: " + message);
}

unsigned byte_at(std::string_view bytes, std::size_t index) {
  return static_cast<unsigned char>(bytes[index]);
}

void append_u16(std::string& bytes, std::size_t value) {
  bytes += static_cast<char>(value >> 8);
  bytes += static_cast<char>(value & 0xff);
}

std::uint16_t read_u16(std::string_view bytes, std::size_t index) {
  return static_cast<std::uint16_t>(byte_at(bytes, index) << 8 | byte_at(bytes, index + 1));
}

void append_tlv(std::string& bytes, unsigned char type, std::string_view value) {
  bytes += static_cast<char>(type);
  append_u16(bytes, value.size());
  bytes += value;
}

// 4 or 16 bytes in network order; empty where the text is no address.
std::string address_bytes(const std::string& text) {
  unsigned char raw[16];
  if (inet_pton(AF_INET, text.c_str(), raw) == 1)
    return std::string(reinterpret_cast<const char*>(raw), 4);
  if (inet_pton(AF_INET6, text.c_str(), raw) == 1)
    return std::string(reinterpret_cast<const char*>(raw), 16);
  return {};
}

constexpr std::string_view kMappedPrefix("\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);

std::string address_text(std::string_view raw) {
  if (raw.size() == 16 && raw.starts_with(kMappedPrefix)) raw.remove_prefix(12);
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(raw.size() == 4 ? AF_INET : AF_INET6, raw.data(), text, sizeof text);
  return text;
}

}  // namespace

std::string_view to_string(StreamKind kind) {
  switch (kind) {
    case StreamKind::kControl: return "control";
    case StreamKind::kSsh: return "ssh";
    case StreamKind::kExec: return "exec";
    case StreamKind::kPty: return "pty";
    case StreamKind::kTcp: return "tcp";
  }
  return "?";
}

std::string to_string(const StreamTarget& target) {
  if (target.kind == StreamKind::kTcp) return fmt::format("tcp:{}", target.port);
  return std::string(to_string(target.kind));
}

Result<StreamTarget> parse_stream_target(std::string_view text) {
  for (const auto kind :
       {StreamKind::kControl, StreamKind::kSsh, StreamKind::kExec, StreamKind::kPty}) {
    if (text == to_string(kind)) return StreamTarget{kind, 0};
  }
  if (text.starts_with("tcp:")) {
    text.remove_prefix(4);
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (error == std::errc{} && end == text.data() + text.size() && port != 0 && port != kInitPort)
      return StreamTarget{StreamKind::kTcp, port};
  }
  return Error(ErrorKind::kInvalid, "bad_stream_kind",
               "a stream is control, ssh, exec, pty or tcp:PORT (PORT 1-65535 but not 65022)");
}

Result<StreamAddress> parse_stream_address(std::string_view text) {
  const Error error(ErrorKind::kInvalid, "bad_address",
                    "an address is IPv4:PORT or [IPv6]:PORT, both numeric");
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return error;
  std::string_view host = text.substr(0, colon);
  const std::string_view port_text = text.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    return error;
  StreamAddress address{std::string(host), 0};
  const auto [end, fault] =
      std::from_chars(port_text.data(), port_text.data() + port_text.size(), address.port);
  if (fault != std::errc{} || end != port_text.data() + port_text.size()) return error;
  if (host.find('\0') != std::string_view::npos || address_bytes(address.address).empty())
    return error;
  return address;
}

std::string to_string(const StreamAddress& address) {
  const bool v6 = address.address.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", address.address, address.port)
            : fmt::format("{}:{}", address.address, address.port);
}

Nonce make_nonce(Random& random) {
  Nonce nonce{};
  random.fill(nonce);
  return nonce;
}

std::string hmac_sha256(std::string_view key, std::string_view bytes) {
  ADL_ASSERT(key.size() == kRunKeyBytes);
  std::string mac(kHmacBytes, '\0');
  crypto_auth_hmacsha256(reinterpret_cast<unsigned char*>(mac.data()),
                         reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                         reinterpret_cast<const unsigned char*>(key.data()));
  return mac;
}

Result<std::string> build_proxy_header(std::string_view key, const ProxyHeader& header) {
  if (key.size() != kRunKeyBytes)
    return Error(ErrorKind::kInternal, "bad_key",
                 fmt::format("a run's key has {} bytes, not {}", kRunKeyBytes, key.size()));
  const std::string kind = to_string(header.target);
  ADL_TRY_STATUS([&]() -> Status {
    ADL_TRY(target, parse_stream_target(kind));
    static_cast<void>(target);
    return {};
  }());
  std::string client = address_bytes(header.client.address);
  std::string endpoint = address_bytes(header.endpoint.address);
  if (client.empty() || endpoint.empty())
    return Error(ErrorKind::kInvalid, "bad_address",
                 fmt::format("'{}' or '{}' is not a numeric address", header.client.address,
                             header.endpoint.address));
  if (client.size() != endpoint.size()) {
    if (client.size() == 4) client.insert(0, kMappedPrefix);
    if (endpoint.size() == 4) endpoint.insert(0, kMappedPrefix);
  }
  std::string body = client + endpoint;
  append_u16(body, header.client.port);
  append_u16(body, header.endpoint.port);
  append_tlv(body, kTlvKind, kind);
  append_tlv(body, kTlvNonce,
             {reinterpret_cast<const char*>(header.nonce.data()), header.nonce.size()});
  std::string bytes(kSignature);
  bytes += static_cast<char>(kVersionProxy);
  bytes += static_cast<char>(client.size() == 4 ? kTcp4 : kTcp6);
  append_u16(bytes, body.size() + kHmacTlvBytes);
  bytes += body;
  append_tlv(bytes, kTlvHmac, hmac_sha256(key, bytes));
  return bytes;
}

Result<std::size_t> proxy_header_size(std::string_view bytes) {
  const std::size_t known = std::min(bytes.size(), kSignature.size());
  if (bytes.substr(0, known) != kSignature.substr(0, known)) return bad_header("no signature");
  if (bytes.size() < kProxyFixedBytes) return kProxyFixedBytes;
  if (byte_at(bytes, 12) != kVersionProxy) return bad_header("not version 2, command PROXY");
  if (byte_at(bytes, 13) != kTcp4 && byte_at(bytes, 13) != kTcp6)
    return bad_header("family is neither TCP over IPv4 nor over IPv6");
  const std::size_t size = kProxyFixedBytes + read_u16(bytes, 14);
  if (size > kProxyHeaderBytesMax)
    return bad_header(fmt::format("{} bytes; the maximum is {}", size, kProxyHeaderBytesMax));
  return size;
}

Result<ProxyHeader> parse_proxy_header(std::string_view key, std::string_view bytes) {
  ADL_TRY(size, proxy_header_size(bytes));
  if (bytes.size() != size || size < kProxyFixedBytes + kAddressBytes4 + kHmacTlvBytes)
    return bad_header("too short");
  // The HMAC first: nothing behind it is looked at before the bytes are the node's.
  const std::string_view signed_bytes = bytes.substr(0, size - kHmacTlvBytes);
  const std::string_view hmac_tlv = bytes.substr(size - kHmacTlvBytes);
  if (byte_at(hmac_tlv, 0) != kTlvHmac || read_u16(hmac_tlv, 1) != kHmacBytes)
    return bad_header("the last TLV is not the HMAC");
  if (key.size() != kRunKeyBytes ||
      sodium_memcmp(hmac_sha256(key, signed_bytes).data(), hmac_tlv.data() + 3, kHmacBytes) != 0)
    return Error(ErrorKind::kDenied, "bad_hmac", "PROXY header: wrong HMAC");

  const bool v6 = byte_at(bytes, 13) == kTcp6;
  const std::size_t address_size = v6 ? 16 : 4;
  std::string_view rest = signed_bytes.substr(kProxyFixedBytes);
  if (rest.size() < (v6 ? kAddressBytes6 : kAddressBytes4)) return bad_header("no addresses");
  ProxyHeader header;
  header.client = {address_text(rest.substr(0, address_size)), read_u16(rest, 2 * address_size)};
  header.endpoint = {address_text(rest.substr(address_size, address_size)),
                     read_u16(rest, 2 * address_size + 2)};
  rest.remove_prefix(2 * address_size + 4);
  bool has_kind = false;
  bool has_nonce = false;
  while (!rest.empty()) {
    if (rest.size() < 3 || rest.size() < 3u + read_u16(rest, 1)) return bad_header("a TLV is cut");
    const unsigned type = byte_at(rest, 0);
    const std::string_view value = rest.substr(3, read_u16(rest, 1));
    rest.remove_prefix(3 + value.size());
    if (type == kTlvKind && !has_kind) {
      ADL_TRY(target, parse_stream_target(value));
      header.target = target;
      has_kind = true;
    } else if (type == kTlvNonce && !has_nonce && value.size() == header.nonce.size()) {
      std::memcpy(header.nonce.data(), value.data(), value.size());
      has_nonce = true;
    } else {
      return bad_header("an unknown or repeated TLV");
    }
  }
  if (!has_kind || !has_nonce) return bad_header("kind or nonce is missing");
  return header;
}

bool NonceCache::accept(const Nonce& nonce) {
  if (!seen_.insert(nonce).second) return false;
  order_.push_back(nonce);
  if (order_.size() > capacity_) {
    seen_.erase(order_.front());
    order_.pop_front();
  }
  return true;
}

}  // namespace autodl
