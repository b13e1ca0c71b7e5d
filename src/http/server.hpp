// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Server: HTTP/1.1 over any listener. Everything runs on one executor (one thread).
//
// Limits against strangers: bytes of a header (431), bytes of a body per route (413), time to send
// a header (408), silence in a body or while reading an answer (connection closed), number of
// connections (503). What can't be parsed is a 400 and the connection closes.
//
//   Server server(executor, std::move(router), options);
//   ADL_TRY_STATUS(server.listen("127.0.0.1:8480"));
//   …
//   co_await server.stop(Millis(5'000));
#pragma once

#include <memory>
#include <string>

#include "async/task.hpp"
#include "base/clock.hpp"
#include "http/router.hpp"
#include "net/listener.hpp"

namespace autodl::http {

struct ServerOptions {
  std::size_t header_bytes_max = 32 * 1024;
  Millis header_limit{10'000};   // from a request's first byte to its header's last
  Millis silence_limit{60'000};  // idle between requests; between two pieces of a body or answer
  std::size_t connections_max = 4'096;
  bool access_log = true;
};

class Server {
 public:
  Server(Executor executor, Router router, ServerOptions options = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // May be called several times, for several addresses.
  Status listen(const std::string& address);
  void serve(std::unique_ptr<Listener> listener);
  std::uint16_t port() const;  // of the first listener

  // Takes no more connections, closes idle ones, lets running requests end within the grace, then
  // closes the rest; returns when no session is left. Handlers see Exchange::stopping().
  Task<void> stop(Millis grace);

  struct Shared;

 private:
  std::shared_ptr<Shared> shared_;
};

}  // namespace autodl::http
