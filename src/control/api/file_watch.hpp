// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// FileWatch: waits until an open file has been written to (inotify). Where the kernel refuses the
// watch, wait() is a short pause: the caller looks again either way. Lives on one executor.
#pragma once

#include <memory>

#include "async/task.hpp"
#include "base/clock.hpp"

namespace autodl {

class FileWatch {
 public:
  FileWatch(Executor executor, int fd);  // fd stays the caller's
  ~FileWatch();
  // Until something was written since the last wait, or the time is over.
  Task<void> wait(Millis limit);
  bool is_watching() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the timer's handler
};

}  // namespace autodl
