// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "init/event_loop.hpp"

#include <sys/epoll.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/assert.hpp"

namespace autodl::init {
namespace {

// MONOTONIC: a timer does not run while the machine sleeps or the instance is checkpointed.
std::int64_t now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

EventLoop::EventLoop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  ADL_ASSERT(epoll_.valid());
}

void EventLoop::watch(int fd, std::uint32_t events, Handler handler) {
  forget(fd);
  auto watch = std::make_shared<Watch>();
  watch->serial = ++serial_;
  watch->handler = std::move(handler);
  epoll_event event{};
  event.events = events;
  event.data.u64 = watch->serial;
  // Fails only for what can't be polled (a regular file): such descriptors never come here.
  ADL_ASSERT(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0);
  fd_of_serial_[watch->serial] = fd;
  watches_[fd] = std::move(watch);
}

void EventLoop::change(int fd, std::uint32_t events) {
  const auto found = watches_.find(fd);
  if (found == watches_.end()) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = found->second->serial;
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void EventLoop::forget(int fd) {
  const auto found = watches_.find(fd);
  if (found == watches_.end()) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  fd_of_serial_.erase(found->second->serial);
  watches_.erase(found);
}

EventLoop::TimerId EventLoop::after(Millis delay, std::function<void()> action) {
  const TimerId id = ++serial_;
  timers_[{now_ms() + delay.count(), id}] = std::move(action);
  return id;
}

void EventLoop::cancel(TimerId id) {
  std::erase_if(timers_, [&](const auto& timer) { return timer.first.second == id; });
}

void EventLoop::later(std::function<void()> action) {
  later_.push_back(std::move(action));
}

int EventLoop::next_timeout_ms() const {
  if (!later_.empty()) return 0;
  if (timers_.empty()) return -1;
  const std::int64_t wait = timers_.begin()->first.first - now_ms();
  return static_cast<int>(std::clamp<std::int64_t>(wait, 0, 60'000));
}

void EventLoop::run_due() {
  while (!timers_.empty() && timers_.begin()->first.first <= now_ms()) {
    const auto action = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    action();
  }
  const auto actions = std::exchange(later_, {});
  for (const auto& action : actions) action();
}

void EventLoop::turn() {
  std::array<epoll_event, 64> events{};
  const int count = epoll_wait(epoll_.get(), events.data(), events.size(), next_timeout_ms());
  for (int i = 0; i < count; ++i) {
    // A copy: the kernel's struct is packed, and its members may not be bound to references.
    const epoll_event event = events[static_cast<std::size_t>(i)];
    const std::uint64_t serial = event.data.u64;
    const auto fd = fd_of_serial_.find(serial);
    if (fd == fd_of_serial_.end()) continue;  // forgotten earlier in this round
    const std::shared_ptr<Watch> watch = watches_.at(fd->second);
    watch->handler(event.events);
  }
  run_due();
}

void EventLoop::run() {
  while (!stopped_) turn();
}

}  // namespace autodl::init
