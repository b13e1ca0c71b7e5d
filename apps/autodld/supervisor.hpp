// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Supervisor: keeps the three children running. A child that ends is started again, after a pause
// that doubles while it keeps ending soon. On SIGTERM or SIGINT the children get SIGTERM, then,
// after kStopGrace, SIGKILL. If the supervisor dies, the children end by themselves (PDEATHSIG);
// containers are touched by nobody.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace autodl {

class Supervisor {
 public:
  static constexpr std::chrono::seconds kStopGrace{10};

  // arguments: what follows the role on each child's command line.
  Supervisor(std::vector<std::string> roles, std::vector<std::string> arguments,
             const Clock& clock);
  // Returns when all children have ended after a signal.
  Status run();

 private:
  struct Child {
    std::string role;
    pid_t pid = -1;
    SteadyTime started{};
    SteadyTime start_at{};
    std::chrono::milliseconds pause{100};
    bool started_once = false;
  };

  Status start(Child& child);
  void reap();
  void start_due();
  std::chrono::milliseconds next_wait() const;
  Status stop_all(int signal_fd);
  bool any_running() const;

  std::vector<Child> children_;
  std::vector<std::string> arguments_;
  const Clock& clock_;
};

}  // namespace autodl
