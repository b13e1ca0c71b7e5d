// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Session: one connection of a Server; reads requests one after the other and calls handlers.
// Private to src/http.
#pragma once

#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/notifier.hpp"
#include "http/exchange.hpp"
#include "http/server.hpp"

namespace autodl::http {

class Session;

// Shared by the server and its sessions, which may outlive it.
struct Server::Shared {
  Shared(Executor runs_on, Router routes, ServerOptions limits)
      : executor(std::move(runs_on)),
        router(std::move(routes)),
        options(limits),
        session_ended(executor) {}

  std::string next_request_id();
  const std::string& date_now();  // "Tue, 01 Dec 2026 16:20:44 GMT", made once a second

  Executor executor;
  const Router router;
  const ServerOptions options;
  bool stopping = false;
  std::list<Session*> sessions;
  std::vector<std::unique_ptr<Listener>> listeners;
  Notifier session_ended;

 private:
  std::string id_prefix_;
  std::uint64_t id_count_ = 0;
  std::int64_t date_second_ = -1;
  std::string date_;
};

class Session final : public Exchange {
 public:
  Session(std::shared_ptr<Server::Shared> shared, std::unique_ptr<Conn> conn);
  ~Session() override;

  Task<void> run();
  void close() { conn_->close(); }
  bool idle() const { return idle_; }

  const Request& request() const override { return request_; }
  void set_actor(std::string actor) override { actor_ = std::move(actor); }
  Task<Result<std::size_t>> read_body(std::span<char> buffer) override;
  Task<Status> send(Response response) override;
  Task<Status> begin_stream(int status, Headers headers) override;
  Task<Status> write_stream(std::string bytes) override;
  Task<Status> end_stream() override;
  Task<Result<UpgradedConn>> upgrade(std::string protocol) override;
  bool answered() const override { return status_ != 0; }
  bool stopping() const override { return shared_->stopping; }

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::buffer_body>;
  enum class Next { kAnotherRequest, kEnd };

  Task<Next> one_request();
  // Whether a header was read; otherwise the connection ends (an answer was sent where due).
  Task<bool> read_header();
  Task<Result<std::size_t>> fill();  // reads more into in_
  std::size_t buffer_bytes_max() const;
  Task<void> refuse(int status, Error error);
  void take_request();
  Status check_request() const;
  Task<bool> read_whole_body();
  Task<void> call_handler(const Route* route);
  Task<void> linger();
  void append_head(std::string& head, int status, const Headers& headers,
                   std::optional<std::size_t> length);
  void log_access() const;

  std::shared_ptr<Server::Shared> shared_;
  std::list<Session*>::iterator place_;
  std::unique_ptr<Conn> conn_;
  // Refuses a chunk by its announced size. Declared here since the parser keeps a reference.
  std::function<void(std::uint64_t, std::string_view, boost::system::error_code&)> on_chunk_;
  std::vector<char> in_;
  std::size_t in_begin_ = 0, in_end_ = 0;
  bool idle_ = true;

  // Of the current request.
  std::optional<Parser> parser_;
  Request request_;
  std::size_t body_bytes_max_ = 0;
  std::uint64_t body_bytes_ = 0;
  bool expects_continue_ = false;
  bool keep_alive_ = false;
  bool streaming_ = false;  // begin_stream was called
  bool chunked_ = false;    // … and its pieces are chunks
  bool whole_ = false;      // the answer is complete
  bool upgraded_ = false;
  int status_ = 0;  // of the answer; 0: none yet
  std::uint64_t sent_bytes_ = 0;
  std::string actor_;
  std::chrono::steady_clock::time_point began_;
};

}  // namespace autodl::http
