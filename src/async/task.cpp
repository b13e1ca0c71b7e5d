// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "async/task.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>

#include "base/log.hpp"

namespace autodl {

namespace asio = boost::asio;

namespace {

// Shared by the two children and the waiting parent of all_of.
struct Join {
  explicit Join(const Executor& executor) : done(executor) {
    done.expires_at(asio::steady_timer::time_point::max());
  }
  void child_ended(std::exception_ptr error) {
    if (error && !first_error) first_error = std::move(error);
    if (--remaining == 0) done.cancel();
  }
  asio::steady_timer done;
  int remaining = 2;
  std::exception_ptr first_error;
};

}  // namespace

void spawn(Executor executor, Task<void> task, std::string name) {
  asio::co_spawn(executor, std::move(task),
                 [name = std::move(name)](const std::exception_ptr& error) {
                   if (!error) return;
                   try {
                     std::rethrow_exception(error);
                   } catch (const std::exception& exception) {
                     log_error("async", "task '{}' threw: {}", name, exception.what());
                   } catch (...) {
                     log_error("async", "task '{}' threw what is no std::exception", name);
                   }
                 });
}

Task<void> all_of(Task<void> first, Task<void> second) {
  const auto executor = co_await asio::this_coro::executor;
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  const auto join = std::make_shared<Join>(executor);
  const auto ended = [join](std::exception_ptr error) { join->child_ended(std::move(error)); };
  asio::co_spawn(executor, std::move(first), ended);
  asio::co_spawn(executor, std::move(second), ended);
  while (join->remaining > 0) {
    boost::system::error_code ignored;
    co_await join->done.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  if (join->first_error) std::rethrow_exception(join->first_error);
}

namespace detail {

void run_to_end(Task<void> task) {
  asio::io_context loop(1);
  std::exception_ptr error;
  asio::co_spawn(loop, std::move(task), [&error](std::exception_ptr thrown) { error = thrown; });
  loop.run();
  if (error) std::rethrow_exception(error);
}

}  // namespace detail

}  // namespace autodl
