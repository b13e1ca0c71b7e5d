// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Unix sockets with peer credentials, and messages with one descriptor.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace autodl {

struct SocketRights {
  unsigned mode = 0660;
  std::optional<gid_t> group;  // unset: as created
};

// type: SOCK_STREAM or SOCK_SEQPACKET. A socket that is there already is replaced. Non-blocking.
Result<UniqueFd> listen_unix(const std::string& path, int type, SocketRights rights);
// kUnavailable where nobody listens.
Result<UniqueFd> connect_unix(const std::string& path, int type);

// Whether the peer is root or this user.
bool peer_is(int fd, std::optional<uid_t> user);

// One message; fd < 0: none. Never blocks.
Status send_message(int socket, std::string_view bytes, int fd = -1);
struct Message {
  std::string bytes;  // empty: the peer has closed
  UniqueFd fd;
};
// Waits at most this long; kUnavailable "timed_out".
Result<Message> receive_message(int socket, std::size_t bytes_max, Millis limit);

}  // namespace autodl
