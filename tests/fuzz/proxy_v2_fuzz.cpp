// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Any bytes as a PROXY header: as they are, and with a right HMAC put behind them, so that what
// comes after the HMAC check is reached too.
#include "wire/proxy_v2.hpp"

#include <string>

#include "fuzz.hpp"

namespace {

using namespace autodl;

constexpr std::size_t kHmacTlvBytes = 35;

// The input, made a header of right length and authentic; empty where it can't be one.
std::string authentic(const std::string& key, std::string bytes) {
  if (bytes.size() < kProxyFixedBytes || bytes.size() > kProxyHeaderBytesMax - kHmacTlvBytes)
    return {};
  const std::size_t length = bytes.size() - kProxyFixedBytes + kHmacTlvBytes;
  bytes[14] = static_cast<char>(length >> 8);
  bytes[15] = static_cast<char>(length & 0xff);
  bytes += std::string("\xE1\x00\x20", 3) + hmac_sha256(key, bytes);
  return bytes;
}

void check_changed(const std::string& key, std::string bytes, std::size_t at) {
  bytes[at % bytes.size()] = static_cast<char>(bytes[at % bytes.size()] ^ 1);
  fuzz::require(!parse_proxy_header(key, bytes).ok(), "a changed header is refused");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string key(kRunKeyBytes, 'k');
  const std::string input(fuzz::text_of(data, size));
  const auto print = [](const auto& value) { return to_string(value); };
  fuzz::round_trip(parse_stream_target, print, input, "stream target");
  fuzz::round_trip(parse_stream_address, print, input, "stream address");
  fuzz::require(!parse_proxy_header(key, input).ok(), "nobody guesses the HMAC");
  const std::string bytes = authentic(key, input);
  if (bytes.empty()) return 0;
  const auto parsed = parse_proxy_header(key, bytes);
  if (!parsed.ok()) return 0;
  const auto& header = parsed.value();
  const auto again = build_proxy_header(key, header);
  fuzz::require(again.ok(), "what is accepted can be written");
  const auto reread = parse_proxy_header(key, again.value());
  fuzz::require(reread.ok() && reread.value().target == header.target &&
                    reread.value().client == header.client &&
                    reread.value().endpoint == header.endpoint &&
                    reread.value().nonce == header.nonce,
                "what is written reads as the same");
  check_changed(key, bytes, static_cast<unsigned char>(input[15]));
  return 0;
}
