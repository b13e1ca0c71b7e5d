// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "agent/exit_watch.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>
#include <vector>

namespace autodl {

ExitWatch::ExitWatch(std::function<void(const InstanceId&)> on_exit)
    : on_exit_(std::move(on_exit)),
      waker_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { run(); }) {}

ExitWatch::~ExitWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake();
  thread_.join();
}

void ExitWatch::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(waker_.get(), &one, sizeof one);
}

void ExitWatch::add(const InstanceId& instance, UniqueFd pidfd) {
  UniqueFd old;  // closed outside the lock; poll may still hold its number for one round
  {
    const std::lock_guard lock(mutex_);
    old = std::exchange(watched_[instance], std::move(pidfd));
  }
  wake();
}

void ExitWatch::run() {
  for (;;) {
    std::vector<pollfd> wanted{{waker_.get(), POLLIN, 0}};
    std::vector<InstanceId> ids;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      for (const auto& [id, fd] : watched_) {
        wanted.push_back({fd.get(), POLLIN, 0});
        ids.push_back(id);
      }
    }
    ::poll(wanted.data(), wanted.size(), -1);
    if ((wanted[0].revents & POLLIN) != 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const auto got = ::read(waker_.get(), &count, sizeof count);
      continue;  // what is watched has changed: the numbers may mean others now
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (wanted[i + 1].revents == 0) continue;
      {
        const std::lock_guard lock(mutex_);
        const auto found = watched_.find(ids[i]);
        if (found == watched_.end() || found->second.get() != wanted[i + 1].fd) continue;
        watched_.erase(found);
      }
      on_exit_(ids[i]);
    }
  }
}

}  // namespace autodl
