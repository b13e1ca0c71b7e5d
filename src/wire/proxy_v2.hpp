// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The header a node writes before everything else on a connection to autodl-init: PROXY protocol
// v2 with the client's and the endpoint's address, and TLVs of ours: 0xE0 kind, 0xE2 nonce, 0xE1
// (last) HMAC-SHA-256 under the run's key of every byte before it. Only node and init hold the key,
// so that a process inside gains nothing by dialling init; a nonce counts once (NonceCache).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/random.hpp"
#include "base/result.hpp"

namespace autodl {

inline constexpr std::uint16_t kInitPort = 65022;
inline constexpr std::size_t kRunKeyBytes = 32;
inline constexpr std::size_t kProxyFixedBytes = 16;
inline constexpr std::size_t kProxyHeaderBytesMax = 256;

enum class StreamKind { kControl, kSsh, kExec, kPty, kTcp };
std::string_view to_string(StreamKind kind);

// What a connection into an instance is for; port: of kTcp alone.
struct StreamTarget {
  StreamKind kind = StreamKind::kControl;
  std::uint16_t port = 0;
  bool operator==(const StreamTarget&) const = default;
};
// "control", "ssh", "exec", "pty", "tcp:8888"; 65022 and 0 are refused.
Result<StreamTarget> parse_stream_target(std::string_view text);
std::string to_string(const StreamTarget& target);

// address: numeric, IPv4 or IPv6, without brackets.
struct StreamAddress {
  std::string address;
  std::uint16_t port = 0;
  bool operator==(const StreamAddress&) const = default;
};
// "10.0.0.7:50122", "[fd00::1]:22"
Result<StreamAddress> parse_stream_address(std::string_view text);
std::string to_string(const StreamAddress& address);

using Nonce = std::array<unsigned char, 16>;
Nonce make_nonce(Random& random);

struct ProxyHeader {
  StreamTarget target;
  StreamAddress client;    // who speaks
  StreamAddress endpoint;  // what it dialled
  Nonce nonce{};
};

// key: kRunKeyBytes. Errors: bad_key, bad_address, bad_stream_kind. Addresses of different families
// are both written as IPv6 (mapped) and read back as IPv4.
Result<std::string> build_proxy_header(std::string_view key, const ProxyHeader& header);

// How many bytes the whole header has, from what has come so far (16 until the length is known).
// An error as soon as the bytes can't be such a header. Read no more than this: what follows the
// header belongs to sshd.
Result<std::size_t> proxy_header_size(std::string_view bytes);

// bytes: exactly proxy_header_size(bytes) of them. kDenied for a wrong HMAC.
Result<ProxyHeader> parse_proxy_header(std::string_view key, std::string_view bytes);

// Remembers the nonces of authentic headers. Bounded: the oldest are forgotten after capacity.
class NonceCache {
 public:
  explicit NonceCache(std::size_t capacity = 1 << 19) : capacity_(capacity) {}
  // False where it has been seen before.
  bool accept(const Nonce& nonce);

 private:
  std::size_t capacity_;
  std::set<Nonce> seen_;
  std::deque<Nonce> order_;
};

// HMAC-SHA-256, 32 bytes; key: kRunKeyBytes.
std::string hmac_sha256(std::string_view key, std::string_view bytes);

}  // namespace autodl
