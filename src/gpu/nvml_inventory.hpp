// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// NvmlInventory: asks libnvidia-ml in a child process, so that neither a hung ioctl nor a crash in
// the driver's library reaches the node. The child is this same program, started again with hidden
// arguments; it opens the library by dlopen (nothing links it) and answers one line of JSON per
// request line on a socketpair (nvml_protocol.hpp).
//
//   child absent --query--> started --answer--> kept for the next query
//     ^                        | deadline over, crash, garbage
//     +---- backoff <----------+ killed (SIGKILL), reported once, delay 0.25 s … 30 s doubled
//
// A child that sits in an uninterruptible ioctl outlives its SIGKILL until the driver lets go; it
// is reaped later and never waited for. Owner: the node. Calls may come from several threads.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/unique_fd.hpp"
#include "gpu/inventory.hpp"

namespace autodl {

struct NvmlConfig {
  // argv of the child: {"/proc/self/exe", "nvml-child", "--library", PATH}. The socket is fd 3.
  std::vector<std::string> child_argv;
  std::map<std::string, std::string> env;  // all of the child's environment (AUTODL_SIM_STATE)
  std::chrono::milliseconds backoff_first{250};
  std::chrono::milliseconds backoff_max{30'000};
};

class NvmlInventory final : public GpuInventory {
 public:
  NvmlInventory(NvmlConfig config, const Clock& clock);
  ~NvmlInventory() override;
  NvmlInventory(const NvmlInventory&) = delete;
  NvmlInventory& operator=(const NvmlInventory&) = delete;

  Result<Inventory> query(std::chrono::milliseconds deadline) override;

  // How often a child was lost so far, for metrics.
  std::uint64_t restarts() const;
  // The child's pid, 0 where there is none. For tests.
  pid_t child_pid() const;

 private:
  Status start_child();
  void drop_child(const std::string& why);
  void reap();
  std::string how_it_ended() const;
  Result<std::string> exchange(std::chrono::milliseconds deadline);

  NvmlConfig config_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  pid_t pid_ = 0;
  UniqueFd socket_;
  std::vector<pid_t> dying_;  // killed, not yet reaped
  std::chrono::milliseconds backoff_{0};
  SteadyTime not_before_{};
  std::string last_problem_;
  std::vector<CardInfo> known_;  // of the last answer: a lost card keeps its UUID
  std::uint64_t restarts_ = 0;
};

// The child's main: argv as after the role's name ("--library", PATH). Serves descriptor 3 until
// it closes. The exit code is for tests; the parent only sees that the child has gone.
int nvml_child_main(int argc, char** argv);

}  // namespace autodl
