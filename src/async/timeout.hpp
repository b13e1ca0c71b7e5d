// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// with_timeout: cancels a task that takes too long and answers kUnavailable "timed_out".
// The task's own waits must be cancellable (sockets, timers and Notifier are; a blocking pool's
// job is not: it is awaited to its end). Connections have cheaper deadlines of their own.
#pragma once

#include <fmt/format.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/system_error.hpp>
#include <memory>

#include "async/task.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace autodl {

template <class T>
Task<Result<T>> with_timeout(Task<Result<T>> task, Millis limit, std::string what) {
  namespace asio = boost::asio;
  // Shared with the timer's handler, which may already be queued when the task ends.
  struct State {
    asio::cancellation_signal signal;
    bool expired = false;
  };
  const auto state = std::make_shared<State>();
  const auto executor = co_await asio::this_coro::executor;
  asio::steady_timer timer(executor, limit);
  timer.async_wait([state](const boost::system::error_code& error) {
    if (error) return;
    state->expired = true;
    state->signal.emit(asio::cancellation_type::terminal);
  });
  auto token = asio::bind_cancellation_slot(state->signal.slot(), asio::use_awaitable);
  std::optional<Result<T>> result;
  try {
    auto kept = detail::keep_result(std::move(task), &result);
    co_await asio::co_spawn(executor, std::move(kept), std::move(token));
  } catch (const boost::system::system_error& error) {
    if (!state->expired || error.code() != asio::error::operation_aborted) throw;
  }
  timer.cancel();
  if (state->expired && (!result || !result->ok()))
    co_return Error(ErrorKind::kUnavailable, "timed_out",
                    fmt::format("{}: no answer within {} ms", what, limit.count()));
  co_return std::move(*result);
}

}  // namespace autodl
