// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "link/stream_client.hpp"

#include <sys/socket.h>

#include "link/unix_socket.hpp"

namespace autodl {

Result<UniqueFd> StreamClient::open(const StreamRequest& request, Millis deadline) {
  const auto away = [](const Error& why) {
    return Error(ErrorKind::kUnavailable, "node_away", why.context("reach the node").message(),
                 "it comes back by itself; try again in a moment");
  };
  auto socket = connect_unix(path_, SOCK_SEQPACKET);
  if (!socket.ok()) return away(socket.error());
  const auto sent = send_message(socket->get(), to_json(request));
  if (!sent.ok()) return away(sent.error());
  ADL_TRY(message, receive_message(socket->get(), kStreamMessageBytesMax, deadline));
  if (message.bytes.empty())
    return away(Error(ErrorKind::kUnavailable, "node_away", "it closed the connection"));
  ADL_TRY(reply, parse_stream_reply(message.bytes));
  if (reply.error) return *reply.error;
  if (!message.fd.valid())
    return Error(ErrorKind::kInternal, "no_descriptor", "the node sent no descriptor");
  return std::move(message.fd);
}

}  // namespace autodl
