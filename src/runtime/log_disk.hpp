// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Logs: while a run lasts, conmon writes into a small ext4 file system of the run's own, so that no
// amount of output can take the host's space; a keeper frees what lies between the first log_head
// and the last log_tail bytes (holes: offsets stay). When the run is over the file, at most head +
// tail large, moves to state_dir/logs/INSTANCE/RUN.log and the small file system goes.
// Where the disk is full (nobody kept it), conmon drops output and the command goes on; the keeper
// then writes a line that says so.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "runtime/config.hpp"
#include "runtime/disk.hpp"
#include "runtime/runtime.hpp"

namespace autodl::runtime {

// What of a log of this size can be freed: [from, to), to a whole step; empty where from >= to.
struct LogHole {
  std::int64_t from = 0;
  std::int64_t to = 0;
};
LogHole log_hole(std::int64_t size, std::int64_t head, std::int64_t tail);

class LogStore {
 public:
  LogStore(const RuntimeConfig& config, DiskStore& disks) : config_(config), disks_(disks) {}
  ~LogStore();
  LogStore(const LogStore&) = delete;
  LogStore& operator=(const LogStore&) = delete;

  Status prepare();  // folders, the blank image, the keeper's thread
  // The run's log disk, mounted; its file is kept from growing. Returns the file's path.
  Result<std::string> open(const InstanceId& id, const RunId& run);
  // Adoption: keeps a log that is there.
  void keep(const InstanceId& id, const RunId& run);
  // Run over: the log moves to its last place. Absent is fine.
  Status archive(const InstanceId& id);
  std::string path(const InstanceId& id, const RunId& run) const;
  Status forget(const InstanceId& id);  // deletes the archived logs

 private:
  struct Kept {
    UniqueFd fd;
    std::int64_t freed_to = 0;
    bool was_full = false;
  };

  std::string image_path(const InstanceId& id, const RunId& run) const;
  std::string mount_point(const InstanceId& id) const;
  std::string live_path(const InstanceId& id, const RunId& run) const;
  std::string final_path(const InstanceId& id, const RunId& run) const;
  Status archive_run(const InstanceId& id, const RunId& run);
  void prune(const InstanceId& id) const;
  void keep_all();
  void trim(Kept& log) const;

  const RuntimeConfig& config_;
  DiskStore& disks_;
  std::mutex mutex_;  // guards kept_ and stopping_
  std::condition_variable wake_;
  std::map<InstanceId, Kept> kept_;
  bool stopping_ = false;
  std::thread keeper_;
};

}  // namespace autodl::runtime
