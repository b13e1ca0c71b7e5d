// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Listener: accepts connections on one address. Lives on one executor.
#pragma once

#include <memory>
#include <string>

#include "async/task.hpp"
#include "net/conn.hpp"

namespace autodl {

class Listener {
 public:
  virtual ~Listener() = default;
  // The next connection; "closed" after close(). Where the process runs out of descriptors it
  // waits and tries again: a flood must not end the server.
  virtual Task<Result<std::unique_ptr<Conn>>> accept() = 0;
  virtual void close() = 0;
  virtual std::uint16_t port() const = 0;  // the bound one, where 0 was asked
};

// "127.0.0.1:0", "[::1]:8480" or "unix:/path".
Result<std::unique_ptr<Listener>> make_listener(Executor executor, const std::string& address);
// A socket that somebody else bound and made listen.
Result<std::unique_ptr<Listener>> adopt_listener(Executor executor, UniqueFd listening);

}  // namespace autodl
