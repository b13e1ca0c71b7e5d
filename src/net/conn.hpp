// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Conn: a connected byte stream, whatever carries it (TCP, unix, a descriptor that the node sent).
// Behind one virtual interface so that what speaks over it is compiled once.
//
// Lives on one executor (one thread). At most one task reads and one writes at a time; close()
// from a third ends both waits with "closed". A deadline holds for whatever waits: when it is
// over, waits end with "timed_out" until the deadline is set anew.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "async/task.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace autodl {

class Conn {
 public:
  virtual ~Conn() = default;

  // At least one byte, or 0 at the peer's end. The buffer must outlive the task.
  // Errors are kUnavailable: "closed" (by us), "reset" (peer lost), "timed_out".
  virtual Task<Result<std::size_t>> read_some(std::span<char> buffer) = 0;
  // All of both pieces, in order. They must outlive the task.
  virtual Task<Status> write_all(std::string_view first, std::string_view second) = 0;
  Task<Status> write_all(std::string_view bytes) { return write_all(bytes, {}); }

  virtual void shutdown_write() = 0;  // half-close: the peer reads an end
  virtual void close() = 0;           // idempotent

  virtual void expires_after(Millis time) = 0;
  virtual void expires_never() = 0;

  virtual const std::string& peer() const = 0;  // "127.0.0.1:50122", for logs
  virtual Executor executor() = 0;
};

// Takes over a connected stream socket. kInvalid where the descriptor is none.
Result<std::unique_ptr<Conn>> adopt_conn(Executor executor, UniqueFd socket, std::string peer);

// Connects to a numeric address within the limit.
Task<Result<std::unique_ptr<Conn>>> connect_to(std::string address, Millis limit);

}  // namespace autodl
