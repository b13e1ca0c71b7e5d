// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// BlockingPool: a few threads for calls that block (files, the node's stream socket, password
// hashes). Bounded: beyond jobs_max that wait or run, a call is refused (kExhausted).
//
//   auto opened = co_await run_blocking(pool, std::move(call));   // call() returns Result<T>
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <concepts>

#include "async/task.hpp"
#include "base/result.hpp"

namespace autodl {

class BlockingPool {
 public:
  BlockingPool(std::size_t threads, std::size_t jobs_max) : pool_(threads), jobs_max_(jobs_max) {}
  // Waits for the running jobs.
  ~BlockingPool() {
    pool_.stop();
    pool_.join();
  }
  BlockingPool(const BlockingPool&) = delete;
  BlockingPool& operator=(const BlockingPool&) = delete;

  Executor executor() { return pool_.get_executor(); }
  bool enter() {
    if (jobs_.fetch_add(1) < jobs_max_) return true;
    jobs_.fetch_sub(1);
    return false;
  }
  void leave() { jobs_.fetch_sub(1); }

 private:
  boost::asio::thread_pool pool_;
  const std::size_t jobs_max_;
  std::atomic<std::size_t> jobs_{0};
};

namespace detail {
template <class Fn>
Task<std::invoke_result_t<Fn>> call_in_task(Fn call) {
  co_return call();
}
}  // namespace detail

// Runs call on the pool and comes back to the caller's executor. call owns what it uses.
template <class Fn>
Task<std::invoke_result_t<Fn>> run_blocking(BlockingPool& pool, Fn call) {
  if (!pool.enter())
    co_return Error(ErrorKind::kExhausted, "busy", "too many requests wait for files or nodes",
                    "try again in a few seconds");
  const struct Leave {
    BlockingPool& pool;
    ~Leave() { pool.leave(); }
  } leave{pool};
  std::optional<std::invoke_result_t<Fn>> result;
  auto task = detail::keep_result(detail::call_in_task(std::move(call)), &result);
  co_await boost::asio::co_spawn(pool.executor(), std::move(task), boost::asio::use_awaitable);
  co_return std::move(*result);
}

}  // namespace autodl
