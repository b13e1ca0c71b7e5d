// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Addresses as people write them: "127.0.0.1:8480", "[::1]:8480", "unix:/run/autodld/x.sock".
// Numeric addresses only: a server never resolves names.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace autodl {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

// kInvalid "bad_address" where the text is none of the three forms.
Result<SocketAddress> parse_address(std::string_view text);
// The inverse; "unix:" for an unnamed unix socket.
std::string to_string(const SocketAddress& address);
std::uint16_t port_of(const SocketAddress& address);  // 0 for a unix socket
bool is_loopback(const SocketAddress& address);       // unix sockets too

// Non-blocking, close-on-exec. A unix path that exists is replaced; mode is set on it.
Result<UniqueFd> listen_on(const SocketAddress& address, unsigned unix_mode = 0600);

}  // namespace autodl
