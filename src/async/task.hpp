// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Task: a coroutine, started when it is awaited. The rules for writing one stand in
// docs/dev/traps.md (one co_await per statement, parameters by value, no capturing lambdas).
//
// spawn() is the only way to start one that nobody awaits: what it throws is logged.
// run_task() runs one to its end on a loop of its own: for tests and small programs.
// all_of() runs two beside each other and returns when both have ended.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace autodl {

template <class T = void>
using Task = boost::asio::awaitable<T>;
using Executor = boost::asio::any_io_executor;

// Starts the task on the executor; an exception that leaves it is logged under this name.
void spawn(Executor executor, Task<void> task, std::string name);

// Both run on the caller's executor; the first exception is thrown again when both have ended.
// Not cancelled with its caller: whoever wants to end it closes what the two wait for.
Task<void> all_of(Task<void> first, Task<void> second);

namespace detail {
template <class T>
Task<void> keep_result(Task<T> task, std::optional<T>* result) {
  result->emplace(co_await std::move(task));
}
void run_to_end(Task<void> task);
}  // namespace detail

template <class T>
T run_task(Task<T> task) {
  if constexpr (std::is_void_v<T>) {
    detail::run_to_end(std::move(task));
  } else {
    std::optional<T> result;
    detail::run_to_end(detail::keep_result(std::move(task), &result));
    return std::move(*result);
  }
}

}  // namespace autodl
