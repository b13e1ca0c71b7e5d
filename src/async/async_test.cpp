// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>

#include <boost/asio/steady_timer.hpp>
#include <stdexcept>
#include <thread>

#include "async/blocking_pool.hpp"
#include "async/notifier.hpp"
#include "async/signals.hpp"
#include "async/task.hpp"
#include "async/timeout.hpp"

namespace autodl {
namespace {

namespace asio = boost::asio;

Task<Result<int>> never() {
  asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::hours(1));
  co_await timer.async_wait(asio::use_awaitable);
  co_return 1;
}

Task<Result<int>> at_once() {
  co_return 7;
}

TEST(WithTimeout, TaskThatHangs_TimedOut) {
  const auto result = run_task(with_timeout(never(), Millis(20), "ask the node"));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), "timed_out");
  EXPECT_EQ(result.error().message(), "ask the node: no answer within 20 ms");
}

TEST(WithTimeout, TaskInTime_ItsResult) {
  EXPECT_EQ(*run_task(with_timeout(at_once(), Millis(10'000), "x")), 7);
}

Task<void> fails() {
  throw std::runtime_error("broken");
  co_return;
}

Task<void> counts(int* count) {
  ++*count;
  co_return;
}

TEST(AllOf, OneThrows_OtherRunsAndTypeIsKept) {
  int count = 0;
  EXPECT_THROW(run_task(all_of(fails(), counts(&count))), std::runtime_error);
  EXPECT_EQ(count, 1);
}

Task<std::thread::id> where(BlockingPool* pool, std::thread::id* inside) {
  auto call = [inside]() -> Result<int> {
    *inside = std::this_thread::get_id();
    return 1;
  };
  const auto done = co_await run_blocking(*pool, std::move(call));
  EXPECT_TRUE(done.ok());
  co_return std::this_thread::get_id();
}

TEST(BlockingPool, Call_RunsElsewhereAndComesBack) {
  BlockingPool pool(1, 4);
  std::thread::id inside;
  const auto after = run_task(where(&pool, &inside));
  EXPECT_EQ(after, std::this_thread::get_id());
  EXPECT_NE(inside, after);
}

TEST(BlockingPool, Full_Refused) {
  BlockingPool pool(1, 1);
  ASSERT_TRUE(pool.enter());
  const auto call = []() -> Result<int> { return 1; };
  const auto result = run_task(run_blocking(pool, call));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind(), ErrorKind::kExhausted);
  pool.leave();
  EXPECT_TRUE(run_task(run_blocking(pool, call)).ok());
}

Task<void> wait_change(Notifier* notifier, std::uint64_t seen, bool* changed) {
  *changed = co_await notifier->wait(seen, Millis(10'000));
}

Task<void> notify_in_thread(Notifier* notifier) {
  std::thread([notifier] { notifier->notify_from_anywhere(); }).join();
  co_return;
}

Task<void> notifier_story(bool* first, bool* missed, bool* timed_out) {
  Notifier notifier(co_await asio::this_coro::executor);
  co_await all_of(wait_change(&notifier, 0, first), notify_in_thread(&notifier));
  *missed = co_await notifier.wait(0, Millis(10'000));  // it was before: not missed
  *timed_out = !co_await notifier.wait(notifier.version(), Millis(5));
}

TEST(Notifier, ChangeFromThread_WakesWaiterAndLateOne) {
  bool first = false, missed = false, timed_out = false;
  run_task(notifier_story(&first, &missed, &timed_out));
  EXPECT_TRUE(first);
  EXPECT_TRUE(missed);
  EXPECT_TRUE(timed_out);
}

Task<void> raise_term() {
  asio::steady_timer timer(co_await asio::this_coro::executor, Millis(1));
  co_await timer.async_wait(asio::use_awaitable);
  ::raise(SIGTERM);
}

Task<void> signal_story(int* number) {
  *number = co_await wait_for_stop_signal();
}

TEST(Signals, Term_IsReturned) {
  int number = 0;
  run_task(all_of(signal_story(&number), raise_term()));
  EXPECT_EQ(number, SIGTERM);
}

}  // namespace
}  // namespace autodl
