// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// EventLoop: one thread, epoll, timers. Descriptors are not owned. Handlers may watch and forget
// anything; what destroys the object a handler belongs to goes through later().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "base/unique_fd.hpp"

namespace autodl::init {

class EventLoop {
 public:
  using Handler = std::function<void(std::uint32_t events)>;
  using TimerId = std::uint64_t;

  EventLoop();

  // events: EPOLLIN | EPOLLOUT | EPOLLRDHUP; errors and hang-up always come. Replaces an earlier
  // watch of this descriptor.
  void watch(int fd, std::uint32_t events, Handler handler);
  void change(int fd, std::uint32_t events);
  void forget(int fd);  // before the descriptor is closed

  TimerId after(Millis delay, std::function<void()> action);
  void cancel(TimerId id);
  // Once the handlers of this round have run.
  void later(std::function<void()> action);

  void run();  // until stop()
  void stop() { stopped_ = true; }

 private:
  struct Watch {
    std::uint64_t serial = 0;
    Handler handler;
  };
  void turn();
  int next_timeout_ms() const;
  void run_due();

  UniqueFd epoll_;
  bool stopped_ = false;
  std::uint64_t serial_ = 0;
  std::map<int, std::shared_ptr<Watch>> watches_;  // shared: a handler may forget itself
  std::map<std::uint64_t, int> fd_of_serial_;
  std::map<std::pair<std::int64_t, TimerId>, std::function<void()>> timers_;  // by due time (ms)
  std::vector<std::function<void()>> later_;
};

}  // namespace autodl::init
