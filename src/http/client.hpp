// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Client: a plain blocking HTTP/1.1 client for programs that do one thing at a time (the CLI).
// Keeps its connection between calls. Not for use by two threads at once.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "http/message.hpp"

namespace autodl::http {

struct ClientOptions {
  Millis connect_limit{10'000};
  Millis silence_limit{60'000};            // the longest wait for the next bytes
  std::size_t body_bytes_max = 64u << 20;  // of an answer that is kept in memory
};

struct ClientRequest {
  std::string method = "GET";
  std::string target;     // "/api/v1/instances?limit=1", percent-encoded
  Headers headers;        // Host, Content-Length and Connection are the client's
  std::string_view body;  // must live until the call returns
};

// A connection that has left HTTP behind (101).
struct Upgraded {
  UniqueFd socket;       // blocking, close-on-exec
  std::string leftover;  // what came behind the answer already
};

class Client {
 public:
  // "http://HOST:PORT[/prefix]" or "unix:/path". kInvalid "bad_url"; connects at the first call.
  static Result<Client> make(std::string_view base_url, ClientOptions options = {});
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // Any status is an answer. Errors are kUnavailable ("connect_failed", "connection_lost",
  // "timed_out") or kInvalid "bad_answer". A kept connection that turns out to be closed is opened
  // again for GETs and for requests with an Idempotency-Key.
  Result<Response> send(const ClientRequest& request);

  // Hands the body of a 2xx answer over piece by piece; on_bytes returns false to hang up. The
  // body of another answer is in the Response. silence: longest wait between pieces.
  using OnBytes = std::function<bool(std::string_view)>;
  Result<Response> stream(const ClientRequest& request, const OnBytes& on_bytes);

  // Asks for another protocol. An answer other than 101 is put into *refused and the result is
  // kInvalid "not_upgraded".
  Result<Upgraded> upgrade(const ClientRequest& request, std::string_view protocol,
                           Response* refused);

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace autodl::http
