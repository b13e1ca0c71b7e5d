// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// FakeRuntime: ContainerRuntime in memory, for tests and the simulation. Same rules as the real
// one: idempotent, conflicts where that has them, disks and pins survive reboot(), containers do
// not. Deterministic; one thread at a time. Faults are scripted:
//
//   fake.fail_next("start_container", error);   the next call fails and does nothing
//   fake.cut_next("create_container");          does it, then throws Cut (kill -9 after the effect)
//   fake.end_container(id, 7, record);          PID 1 ends
//   fake.set_duration("create_container", 90ms) what on_call is told, for a virtual clock
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/runtime.hpp"

namespace autodl {

class FakeRuntime final : public ContainerRuntime {
 public:
  struct Cut {};  // thrown: the process died here

  // Told at the start of each call: its name, the instance ("" where none) and how long it takes.
  std::function<void(const std::string& call, const InstanceId&, std::chrono::nanoseconds)> on_call;

  void fail_next(const std::string& call, Error error, int times = 1);
  void cut_next(const std::string& call);
  void set_duration(const std::string& call, std::chrono::nanoseconds time);
  void add_image(ImageInfo image);
  void set_host_space(std::int64_t bytes) { host_space_ = bytes; }

  // PID 1 ends: with an exit code, or without one (conmon died too).
  void end_container(const InstanceId& id, std::optional<int> exit_code, std::string record = {});
  void kill_out_of_memory(const InstanceId& id);
  void reboot();                              // containers and mounts are gone
  void lose_container(const InstanceId& id);  // as if somebody had removed it

  // What happened, for assertions: how often a run's container was started, what exists.
  int starts_of(const RunId& run) const;
  bool has_disk(const InstanceId& id) const { return disks_.contains(id); }
  bool has_container(const InstanceId& id) const { return containers_.contains(id); }
  bool running(const InstanceId& id) const;
  std::optional<ContainerSpec> spec_of(const InstanceId& id) const;
  std::vector<std::string> calls() const { return calls_; }  // "create_container 01H…"

  Status prepare() override;
  Result<std::vector<FoundInstance>> scan() override;
  Result<ImageInfo> ensure_image(const std::string& reference,
                                 const PullProgress& progress) override;
  Result<std::vector<ImageInfo>> list_images() override;
  Status ensure_disk(const DiskSpec& spec) override;
  Status ensure_root(const RootSpec& spec) override;
  Status create_container(const ContainerSpec& spec) override;
  Status start_container(const InstanceId& id, const RunId& run) override;
  Result<ContainerStatus> status(const InstanceId& id) override;
  Result<UniqueFd> watch(const InstanceId& id) override;
  Status kill_container(const InstanceId& id) override;
  Status remove_container(const InstanceId& id) override;
  Status release_root(const InstanceId& id) override;
  Status destroy(const InstanceId& id) override;
  std::string address_of(std::uint32_t slot) override;
  Result<Namespaces> namespaces(const InstanceId& id, std::uint32_t slot) override;
  std::string log_path(const InstanceId& id, const RunId& run) override;
  Result<std::int64_t> disk_used_bytes(const InstanceId& id) override;
  std::optional<std::int64_t> cpu_time_ns(const InstanceId& id) override;

 private:
  struct Disk {
    std::int64_t size_bytes = 0;
    std::uint32_t slot = 0;
    std::string image_digest;
    bool mounted = false;
  };
  struct Container {
    ContainerSpec spec;
    ContainerStatus status;
    UniqueFd ended;  // eventfd: watch() hands out copies
  };

  // Notes the call and applies a scripted fault.
  Status begin(const std::string& call, const InstanceId& id);
  // The end of a call that took effect: where the process dies if it was told to.
  Status end(const std::string& call);
  void finish(Container& container);

  std::map<std::string, std::vector<Error>> failures_;
  std::set<std::string> cuts_;
  std::map<std::string, std::chrono::nanoseconds> durations_;
  std::map<std::string, ImageInfo> images_;
  std::map<InstanceId, Disk> disks_;
  std::map<InstanceId, Container> containers_;
  std::map<RunId, int> starts_;
  std::vector<std::string> calls_;
  std::int64_t host_space_ = std::int64_t{1} << 50;
  int next_pid_ = 1000;
};

}  // namespace autodl
