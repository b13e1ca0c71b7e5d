// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Exchange: one request and its answer, as a handler sees them. The handler answers exactly once:
// send(), or begin_stream() … end_stream(), or upgrade(). Lives until the handler's task ends.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "async/task.hpp"
#include "base/result.hpp"
#include "http/message.hpp"
#include "net/conn.hpp"

namespace autodl::http {

struct Request {
  std::string method;  // upper case
  std::string path;    // as sent (percent-encoded), without the query
  std::string query;   // as sent, without '?'
  Headers headers;
  std::map<std::string, std::string, std::less<>> params;  // of the route's path, decoded
  std::string body;                                        // whole, unless the route streams it
  std::string peer;                                        // "127.0.0.1:50122"
  std::string request_id;

  const std::string& param(std::string_view name) const {
    const auto found = params.find(name);
    ADL_ASSERT(found != params.end());
    return found->second;
  }
};

struct UpgradedConn {
  Conn* conn = nullptr;  // the session's; valid until the handler's task ends; no deadline is set
  std::string leftover;  // what the client sent behind its request already
  bool operator==(const UpgradedConn&) const = default;
};

class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const Request& request() const = 0;
  // For the access log: who it was ("account 01H…"), once known. Never a secret.
  virtual void set_actor(std::string actor) = 0;

  // The next bytes of a streamed body; 0 at its end. kInvalid "body_too_long" over the route's
  // limit, "bad_body"; kUnavailable where the client is gone or too slow.
  virtual Task<Result<std::size_t>> read_body(std::span<char> buffer) = 0;

  virtual Task<Status> send(Response response) = 0;

  // A body of unknown length, piece by piece.
  virtual Task<Status> begin_stream(int status, Headers headers) = 0;
  virtual Task<Status> write_stream(std::string bytes) = 0;
  virtual Task<Status> end_stream() = 0;

  // Answers 101 and leaves HTTP; kInvalid "upgrade_required" where the request did not ask for
  // this protocol (nothing is sent then).
  virtual Task<Result<UpgradedConn>> upgrade(std::string protocol) = 0;

  virtual bool answered() const = 0;  // an answer has begun
  virtual bool stopping() const = 0;  // the server stops: long answers should end
};

}  // namespace autodl::http
