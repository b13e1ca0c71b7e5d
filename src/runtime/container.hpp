// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Containers: conmon + runc for one instance at a time. What is known about a container stands in
// run_dir/c/ID:
//   config.json           runc's bundle
//   created.json          written last: run, PID 1 and its start time, boot. Without it the
//                         container is half made, nothing of it ever ran, and it is made again.
//   pid conmon.pid exit/  conmon's
// A container counts as started when runc's exec.fifo is gone. All survives the node's death.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "runtime/cgroups.hpp"
#include "runtime/config.hpp"
#include "runtime/oci_bundle.hpp"
#include "runtime/runtime.hpp"

namespace autodl::runtime {

// A process that can't be mistaken for a later one with its number.
struct ProcessIdentity {
  int pid = 0;
  std::uint64_t start_ticks = 0;  // field 22 of /proc/PID/stat
  bool operator==(const ProcessIdentity&) const = default;
};
// Of /proc/PID/stat's text; nullopt for a zombie or nonsense.
std::optional<std::uint64_t> parse_start_ticks(std::string_view stat);
std::optional<ProcessIdentity> identify(int pid);
bool alive(const ProcessIdentity& process);

struct CreatedRecord {
  RunId run;
  std::uint32_t slot = 0;
  ProcessIdentity init;
  ProcessIdentity conmon;
  std::string boot_id;
};

class Containers {
 public:
  Containers(const RuntimeConfig& config, const Cgroups& cgroups);

  Status prepare();
  // conmon + runc create up to the point where PID 1 waits for start. The bundle's folder is made
  // new; leftovers of a half-made container are removed first.
  Result<ProcessIdentity> create(const InstanceId& id, const boost::json::object& bundle,
                                 const std::string& log_path);
  // Makes it count as created; after network and all else is in place.
  Status mark_created(const InstanceId& id, const RunId& run, std::uint32_t slot,
                      const ProcessIdentity& init);
  Status start(const InstanceId& id);
  // kNone where there is no created.json. Waits shortly for conmon's word on the exit code.
  ContainerStatus status(const InstanceId& id) const;
  std::optional<CreatedRecord> created(const InstanceId& id) const;
  bool any_trace(const InstanceId& id) const;  // of a whole or half-made container
  std::vector<InstanceId> list() const;
  Status kill(const InstanceId& id) const;
  // Process, conmon, runc's state and cgroup gone; then the folder. Error: cgroup_stays, tool_*.
  Status remove(const InstanceId& id) const;

 private:
  std::string folder(const InstanceId& id) const;
  std::string runc_root() const { return config_.run_dir + "/runc"; }
  std::vector<std::string> conmon_argv(const InstanceId& id, const std::string& log_path) const;
  std::optional<int> exit_code(const InstanceId& id) const;
  std::optional<int> await_exit_code(const InstanceId& id, const ProcessIdentity& conmon) const;
  void end_conmon(const InstanceId& id) const;
  void end_builders(const InstanceId& id) const;

  const RuntimeConfig& config_;
  const Cgroups& cgroups_;
  std::string boot_id_;
};

}  // namespace autodl::runtime
