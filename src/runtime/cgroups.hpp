// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Cgroups: what the runtime reads and does in an instance's control groups, on version 1 (a folder
// per controller) and version 2 (one folder).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace autodl::runtime {

// "oom_kill N" of memory.oom_control (v1) or memory.events (v2).
std::int64_t parse_oom_kills(std::string_view text);

class Cgroups {
 public:
  // root: /sys/fs/cgroup; prefix: the installation's, parent of all its instances' groups.
  Cgroups(std::string root, std::string prefix);

  bool unified() const { return unified_; }
  bool has_swap_accounting() const;
  // As runc wants it: "/PREFIX/ID".
  std::string runc_path(const std::string& id) const { return "/" + prefix_ + "/" + id; }

  std::vector<std::string> folders(const std::string& id) const;  // those that exist
  std::vector<int> processes(const std::string& id) const;
  std::int64_t oom_kills(const std::string& id) const;
  std::int64_t memory_peak_bytes(const std::string& id) const;
  // CPU time used by all its processes so far, in nanoseconds.
  std::optional<std::int64_t> cpu_time_ns(const std::string& id) const;

  void kill_all(const std::string& id) const;  // thaws first; does not wait
  // Kills what is left and removes the folders, until they are gone. Error: cgroup_stays.
  Status remove(const std::string& id) const;

 private:
  std::string controller_folder(const char* controller, const std::string& id) const;

  std::string root_;
  std::string prefix_;
  bool unified_ = false;
};

}  // namespace autodl::runtime
