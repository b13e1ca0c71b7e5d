// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// For tests: a Server on a loop in a thread of its own, and a raw blocking socket to talk to it.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include "base/unique_fd.hpp"
#include "http/server.hpp"

namespace autodl::http::testing {

class ServerInThread {
 public:
  explicit ServerInThread(Router router, ServerOptions options = quiet()) {
    server_.emplace(loop_.get_executor(), std::move(router), options);
    ADL_ASSERT(server_->listen("127.0.0.1:0").ok());
    port_ = server_->port();
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~ServerInThread() { stop(Millis(1'000)); }

  static ServerOptions quiet() {
    ServerOptions options;
    options.access_log = false;
    return options;
  }
  std::uint16_t port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  // Starts to stop; join waits for it.
  void begin_stop(Millis grace) {
    boost::asio::post(loop_, [this, grace] {
      spawn(loop_.get_executor(), stop_task(&*server_, &work_, grace), "stop");
    });
  }
  void join() { thread_.join(); }
  void stop(Millis grace) {
    if (!thread_.joinable()) return;
    begin_stop(grace);
    join();
  }

 private:
  using Work =
      std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>>;
  static Task<void> stop_task(Server* server, Work* work, Millis grace) {
    co_await server->stop(grace);
    work->reset();
  }

  boost::asio::io_context loop_{1};
  Work work_{boost::asio::make_work_guard(loop_)};
  std::optional<Server> server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ADL_ASSERT(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    const timeval limit{10, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  void send(std::string_view text) { ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL); }
  void end() { ::shutdown(fd_.get(), SHUT_WR); }
  // Until the text has this piece (then what came so far), or the server's end.
  std::string read_until(std::string_view piece) {
    while (got_.find(piece) == std::string::npos)
      if (!read_more()) return got_ + "<end>";
    const auto end = got_.find(piece) + piece.size();
    std::string text = got_.substr(0, end);
    got_.erase(0, end);
    return text;
  }
  std::string read_to_end() {
    while (read_more()) {
    }
    return std::exchange(got_, {});
  }

 private:
  bool read_more() {
    char piece[4096];
    const auto got = ::recv(fd_.get(), piece, sizeof piece, 0);
    if (got <= 0) return false;
    got_.append(piece, static_cast<std::size_t>(got));
    return true;
  }
  UniqueFd fd_;
  std::string got_;
};

}  // namespace autodl::http::testing
