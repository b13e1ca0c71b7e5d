// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "http/server.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <tuple>

#include "base/log.hpp"
#include "base/random.hpp"
#include "http/session.hpp"

namespace autodl::http {
namespace {

Task<void> run_session(std::shared_ptr<Server::Shared> shared, std::unique_ptr<Conn> conn) {
  Session session(std::move(shared), std::move(conn));
  co_await session.run();
}

Task<void> turn_away(std::unique_ptr<Conn> conn) {
  conn->expires_after(Millis(1'000));
  std::ignore = co_await conn->write_all(
      "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
}

Task<void> accept_all(std::shared_ptr<Server::Shared> shared, Listener* listener) {
  while (!shared->stopping) {
    auto accepted = co_await listener->accept();
    if (!accepted.ok()) {
      if (accepted.error().code() == "closed") co_return;
      log_warn("http", "{}", accepted.error().message());
      continue;
    }
    auto conn = std::move(accepted).value();
    if (shared->sessions.size() >= shared->options.connections_max)
      spawn(shared->executor, turn_away(std::move(conn)), "http turn away");
    else
      spawn(shared->executor, run_session(shared, std::move(conn)), "http session");
  }
}

}  // namespace

std::string Server::Shared::next_request_id() {
  if (id_prefix_.empty()) {
    SystemRandom random;
    id_prefix_ = random.hex(6);
  }
  return fmt::format("req_{}{:08x}", id_prefix_, ++id_count_);
}

const std::string& Server::Shared::date_now() {
  const auto now = std::time(nullptr);
  if (now != date_second_) {
    date_second_ = now;
    date_ = fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(now));
  }
  return date_;
}

Server::Server(Executor executor, Router router, ServerOptions options)
    : shared_(std::make_shared<Shared>(std::move(executor), std::move(router), options)) {}

Server::~Server() {
  shared_->stopping = true;
  for (const auto& listener : shared_->listeners) listener->close();
  for (Session* session : shared_->sessions) session->close();
}

Status Server::listen(const std::string& address) {
  ADL_TRY(listener, make_listener(shared_->executor, address));
  serve(std::move(listener));
  return {};
}

void Server::serve(std::unique_ptr<Listener> listener) {
  Listener* raw = listener.get();
  shared_->listeners.push_back(std::move(listener));
  spawn(shared_->executor, accept_all(shared_, raw), "http accept");
}

std::uint16_t Server::port() const {
  return shared_->listeners.empty() ? std::uint16_t{0} : shared_->listeners.front()->port();
}

Task<void> Server::stop(Millis grace) {
  const auto shared = shared_;
  shared->stopping = true;
  for (const auto& listener : shared->listeners) listener->close();
  for (Session* session : shared->sessions)
    if (session->idle()) session->close();
  const auto end = std::chrono::steady_clock::now() + grace;
  while (!shared->sessions.empty()) {
    const auto left = std::chrono::duration_cast<Millis>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    const auto seen = shared->session_ended.version();
    co_await shared->session_ended.wait(seen, left);
  }
  for (Session* session : shared->sessions) session->close();
  while (!shared->sessions.empty()) {
    const auto seen = shared->session_ended.version();
    const bool changed = co_await shared->session_ended.wait(seen, Millis(30'000));
    if (!changed)
      log_warn("http", "{} requests do not end after their connections were closed",
               shared->sessions.size());
  }
}

}  // namespace autodl::http
