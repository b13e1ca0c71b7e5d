// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// ContainerRuntime: what a node does to the machine for an instance. Implemented by RuncRuntime
// (real) and FakeRuntime (testing/, scripted faults). Every call blocks, is idempotent, may be cut
// off by kill -9 anywhere and then called again. Calls for one instance never overlap; calls for
// different instances run in parallel.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace autodl {

struct ImageInfo {
  std::string reference;
  std::string digest;  // "sha256:…" of the image's configuration or manifest
  std::int64_t size_bytes = 0;
  std::map<std::string, std::string> env;  // of the image's configuration
  std::string workdir;
};

// percent: nullopt where the total is not known.
using PullProgress = std::function<void(std::string phase, std::optional<int> percent)>;

struct DiskSpec {
  InstanceId id;
  std::int64_t size_bytes = 0;
  std::uint32_t slot = 0;  // host uid base = configured base + slot * 65,536
};

struct RootSpec {
  InstanceId id;
  std::string image_digest;
  std::uint32_t slot = 0;
};

// One card's share of what is mounted inside (from gpu's CardDelivery); node-made paths only.
struct DeviceMount {
  std::string host_path;
  std::string container_path;
  bool is_device = false;  // a device node (also allowed in the device cgroup)
  bool read_only = true;
};

struct ContainerSpec {
  InstanceId id;
  RunId run;
  std::uint32_t slot = 0;
  std::string hostname;
  std::string run_key;  // 32 bytes; the runtime writes it to boot/key
  std::vector<DeviceMount> devices;
  std::string cpuset;             // "0-1"; empty: all
  std::int64_t memory_bytes = 0;  // hard limit
  std::int64_t pids_max = 4096;
};

enum class ContainerPhase { kNone, kCreated, kRunning, kExited };

struct ContainerStatus {
  ContainerPhase phase = ContainerPhase::kNone;
  RunId run;                     // whose container it is (from its annotation)
  int pid = 0;                   // of PID 1, in the host's pid namespace
  std::optional<int> exit_code;  // of PID 1, from conmon's exit file
  std::string exit_record;     // what init left in boot/exit.json (≤ 4 KiB, hostile); may be empty
  bool out_of_memory = false;  // the memory cgroup killed something during the run
  std::int64_t memory_peak_bytes = 0;
  // When PID 1 ended, UTC: the modification time of conmon's exit file (outside the tenant's
  // reach).
  std::optional<std::int64_t> exited_utc_ms;
};

struct FoundInstance {
  InstanceId id;
  bool disk = false;
  bool mounted = false;
  ContainerStatus container;
};

class ContainerRuntime {
 public:
  virtual ~ContainerRuntime() = default;

  // Once, before anything else: base folders, nft table, leftovers of half-made things.
  virtual Status prepare() = 0;
  // All that exists on this machine, for adoption after a restart.
  virtual Result<std::vector<FoundInstance>> scan() = 0;

  // Makes the image present (pull, or known locally) and pins it. Error: unknown_image,
  // pull_failed.
  virtual Result<ImageInfo> ensure_image(const std::string& reference,
                                         const PullProgress& progress) = 0;
  virtual Result<std::vector<ImageInfo>> list_images() = 0;

  virtual Status ensure_disk(const DiskSpec& spec) = 0;  // no_space
  virtual Status ensure_root(const RootSpec& spec) = 0;  // disk + layers + overlay mounted
  // conmon + runc create, network, cgroup; nothing of the image executes yet.
  virtual Status create_container(const ContainerSpec& spec) = 0;
  virtual Status start_container(const InstanceId& id, const RunId& run) = 0;
  virtual Result<ContainerStatus> status(const InstanceId& id) = 0;
  // A pidfd of PID 1: readable when it has exited.
  virtual Result<UniqueFd> watch(const InstanceId& id) = 0;
  virtual Status kill_container(const InstanceId& id) = 0;  // the whole cgroup, now
  // Container, network and cgroup gone (proven); disk, root and logs stay.
  virtual Status remove_container(const InstanceId& id) = 0;
  virtual Status release_root(const InstanceId& id) = 0;  // unmounts; disk stays
  virtual Status destroy(const InstanceId& id) = 0;       // nothing is left but logs

  virtual std::string address_of(std::uint32_t slot) = 0;  // "100.64.0.6"
  // Namespaces for a file worker: of the running container, or made for the purpose.
  // Fills the descriptors of the user and mount namespace whose root is the instance's.
  struct Namespaces {
    UniqueFd user;
    UniqueFd mount;
    std::string root;
  };
  virtual Result<Namespaces> namespaces(const InstanceId& id, std::uint32_t slot) = 0;
  virtual std::string log_path(const InstanceId& id, const RunId& run) = 0;
  virtual Result<std::int64_t> disk_used_bytes(const InstanceId& id) = 0;
  // CPU time that the container's processes have used so far; nullopt where there is none.
  virtual std::optional<std::int64_t> cpu_time_ns(const InstanceId&) { return std::nullopt; }
};

}  // namespace autodl
