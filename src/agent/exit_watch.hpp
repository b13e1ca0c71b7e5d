// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// ExitWatch: tells when a container's PID 1 has ended, from its pidfd. One thread.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "base/ids.hpp"
#include "base/unique_fd.hpp"

namespace autodl {

class ExitWatch {
 public:
  explicit ExitWatch(std::function<void(const InstanceId&)> on_exit);
  ~ExitWatch();
  ExitWatch(const ExitWatch&) = delete;
  ExitWatch& operator=(const ExitWatch&) = delete;

  // Replaces one of the same instance. Told once, then forgotten.
  void add(const InstanceId& instance, UniqueFd pidfd);

 private:
  void run();
  void wake() const;

  const std::function<void(const InstanceId&)> on_exit_;
  UniqueFd waker_;
  std::mutex mutex_;  // guards what follows
  bool stopping_ = false;
  std::map<InstanceId, UniqueFd> watched_;
  std::thread thread_;
};

}  // namespace autodl
