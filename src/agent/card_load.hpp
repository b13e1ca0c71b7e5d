// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What an instance does to its cards, as told from outside, and what its Monitor is told.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "gpu/card_provider.hpp"
#include "gpu/inventory.hpp"

namespace autodl {

// Simulated cards take their load from the instance's processors: this much of what it may use.
class CpuLoad {
 public:
  // cpu_ns: used since its start. 0 at the first look.
  int percent(const InstanceId& instance, std::int64_t cpu_ns, SteadyTime now, int processors);
  void forget(const InstanceId& instance) { last_.erase(instance); }

 private:
  struct Look {
    std::int64_t cpu_ns;
    SteadyTime at;
  };
  std::map<InstanceId, Look> last_;
};

// The pids in the memory cgroup of this process and the memory they use; empty where it can't be
// told (cgroup v1 and v2). `proc` and `cgroup` are "/proc" and "/sys/fs/cgroup" but in tests.
struct CgroupUse {
  std::vector<std::int64_t> pids;  // at most 64
  std::int64_t memory_bytes = 0;
};
CgroupUse read_cgroup_use(int pid, const std::string& proc = "/proc",
                          const std::string& cgroup = "/sys/fs/cgroup");

// {"gpus":[…]}: the run's cards in their order inside, with the members of the API's GpuSample.
std::string print_samples(const Inventory& inventory, const std::vector<CardId>& cards);

}  // namespace autodl
