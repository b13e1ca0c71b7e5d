// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// One connection into the instance after its header was accepted. Streams belong to StreamTable and
// ask it, through StreamHost, to be dropped; that happens once the current handlers have run.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/unique_fd.hpp"
#include "init/event_loop.hpp"
#include "init/process.hpp"

namespace autodl::init {

class Stream {
 public:
  virtual ~Stream() = default;
};

// What streams need of init. Outlives them.
struct StreamHost {
  EventLoop& loop;
  Children& children;
  // Of the run; known before any stream is let in.
  Environment environment;
  std::string workdir;
  std::function<void(Stream*)> drop;
};

// exec and pty: a program, framed (wire/init_messages.hpp).
std::unique_ptr<Stream> make_process_stream(StreamHost& host, UniqueFd socket, bool terminal);

// tcp:PORT: bytes to and from a service on the instance's loopback.
std::unique_ptr<Stream> make_tcp_stream(StreamHost& host, UniqueFd socket, std::uint16_t port);

}  // namespace autodl::init
