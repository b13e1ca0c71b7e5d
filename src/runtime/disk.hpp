// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// DiskStore: one ext4 file system of a hard size per instance, in a sparse file. On it:
//   upper/ work/  the overlay's; data/  the data folder; boot/  init's own; etc/  hosts and so on
// All that the instance may write belongs to its id range. Thread-safe for different instances.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "runtime/config.hpp"
#include "runtime/runtime.hpp"

namespace autodl::runtime {

// What is known about a disk beside its image file; durable.
struct DiskRecord {
  std::int64_t size_bytes = 0;
  std::uint32_t slot = 0;
  std::string image_digest;  // of the root file system; empty until there is one
  bool operator==(const DiskRecord&) const = default;
};

// How much of the host's space may still be promised.
struct HostSpace {
  std::int64_t free_bytes = 0;      // to unprivileged users
  std::int64_t promised_bytes = 0;  // by image files, not yet written
};
// nullopt: size fits. Otherwise how many bytes are there for it (may be negative).
std::optional<std::int64_t> lacking_space(const HostSpace& space, std::int64_t size_bytes,
                                          std::int64_t reserve_bytes);

class DiskStore {
 public:
  explicit DiskStore(const RuntimeConfig& config) : config_(config) {}

  Status prepare();
  // Makes the image file (once) and mounts it. Errors: no_space, disk_conflict.
  Status ensure(const DiskSpec& spec);
  Status mount(const InstanceId& id);  // of a disk that exists
  // Room and inodes that a tenant cannot use up, for what the node writes at a start: a full disk
  // can be started again (and only then be emptied). Best effort; taken back after a start
  // that needed it.
  void keep_spare(const InstanceId& id) const;
  // For a start that found the disk full.
  Status give_up_spare(const InstanceId& id) const;
  Status unmount(const InstanceId& id);
  Status destroy(const InstanceId& id);

  Result<DiskRecord> record(const InstanceId& id) const;  // no_disk
  Status set_image(const InstanceId& id, const std::string& digest);
  Result<std::int64_t> used_bytes(const InstanceId& id) const;
  std::vector<InstanceId> list() const;

  std::uint32_t first_uid(std::uint32_t slot) const { return config_.uid_base + slot * 65536U; }
  // run_dir/m/ID: d (disk), l (layers while mounting), r (root)
  std::string instance_folder(const InstanceId& id) const;
  std::string mount_point(const InstanceId& id) const { return instance_folder(id) + "/d"; }

  // Space for a log disk of this size, counted like any other promise.
  Status check_space(std::int64_t size_bytes) const;

 private:
  std::string image_path(const InstanceId& id) const;
  std::string record_path(const InstanceId& id) const;
  Status make_folders(const InstanceId& id, std::uint32_t slot);

  const RuntimeConfig& config_;
  std::mutex making_;  // space is checked and promised under it
};

}  // namespace autodl::runtime
