// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/log_disk.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <linux/fs.h>

#include <cerrno>
#include <chrono>

#include "base/clock.hpp"
#include "base/crash_point.hpp"
#include "runtime/host_files.hpp"
#include "runtime/loop_device.hpp"
#include "runtime/mounts.hpp"

namespace autodl::runtime {
namespace {

constexpr std::int64_t kStep = std::int64_t{1} << 20;
constexpr std::chrono::milliseconds kKeepInterval{50};
constexpr std::int64_t kFullBelow = std::int64_t{64} << 10;

Error log_error(std::string_view action, const std::string& path, int error) {
  return errno_error(fmt::format("{} '{}'", action, path), error,
                     error == ENOSPC ? ErrorKind::kExhausted : ErrorKind::kInternal);
}

// Copies [from, to) within the kernel; falls back to nothing: both are regular files.
Status copy_range(int in, int out, std::int64_t from, std::int64_t to, const std::string& path) {
  loff_t read_at = from, write_at = from;
  while (read_at < to) {
    const auto copied =
        ::copy_file_range(in, &read_at, out, &write_at, static_cast<std::size_t>(to - read_at), 0);
    if (copied < 0 && errno == EXDEV) {
      char buffer[1 << 16];
      const auto want =
          std::min<std::int64_t>(static_cast<std::int64_t>(sizeof buffer), to - read_at);
      const auto got = ::pread(in, buffer, static_cast<std::size_t>(want), read_at);
      if (got < 0 || ::pwrite(out, buffer, static_cast<std::size_t>(got), write_at) != got)
        return log_error("copy to", path, errno);
      read_at += got;
      write_at += got;
      if (got == 0) break;
      continue;
    }
    if (copied < 0) return log_error("copy to", path, errno);
    if (copied == 0) break;
  }
  return {};
}

// A copy with the same holes.
Status copy_sparse(const std::string& from, const std::string& to) {
  UniqueFd in(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  UniqueFd out(::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  struct stat info{};
  if (!in.valid() || ::fstat(in.get(), &info) != 0) return log_error("open", from, errno);
  if (!out.valid() || ::ftruncate(out.get(), info.st_size) != 0)
    return log_error("create", to, errno);
  for (off_t at = 0; at < info.st_size;) {
    const auto data = ::lseek(in.get(), at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // only a hole is left
    const auto hole = data < 0 ? info.st_size : ::lseek(in.get(), data, SEEK_HOLE);
    ADL_TRY_STATUS(copy_range(in.get(), out.get(), std::max<off_t>(data, at),
                              hole < 0 ? info.st_size : hole, to));
    at = hole < 0 ? info.st_size : hole;
  }
  return {};
}

}  // namespace

LogHole log_hole(std::int64_t size, std::int64_t head, std::int64_t tail) {
  const auto from = (head + kStep - 1) / kStep * kStep;
  const auto to = (size - tail) / kStep * kStep;
  return to > from ? LogHole{from, to} : LogHole{};
}

LogStore::~LogStore() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (keeper_.joinable()) keeper_.join();
}

std::string LogStore::image_path(const InstanceId& id, const RunId& run) const {
  return fmt::format("{}/logs/{}/{}.img", config_.state_dir, id.str(), run.str());
}
std::string LogStore::mount_point(const InstanceId& id) const {
  return fmt::format("{}/m/log-{}", config_.run_dir, id.str());
}
std::string LogStore::live_path(const InstanceId& id, const RunId& run) const {
  return fmt::format("{}/{}.log", mount_point(id), run.str());
}
std::string LogStore::final_path(const InstanceId& id, const RunId& run) const {
  return fmt::format("{}/logs/{}/{}.log", config_.state_dir, id.str(), run.str());
}

std::string LogStore::path(const InstanceId& id, const RunId& run) const {
  const auto done = final_path(id, run);
  return path_exists(done) ? done : live_path(id, run);
}

Status LogStore::prepare() {
  ADL_TRY_STATUS(make_folder(config_.state_dir + "/logs", 0700));
  // A blank file system, made once: a log disk is then a copy of its few used blocks.
  const auto blank = fmt::format("{}/logs/blank-{}", config_.state_dir, config_.log_disk_bytes);
  if (!path_exists(blank)) ADL_TRY_STATUS(make_ext4_image(blank, config_.log_disk_bytes));
  if (!keeper_.joinable()) keeper_ = std::thread([this] { keep_all(); });
  return {};
}

Result<std::string> LogStore::open(const InstanceId& id, const RunId& run) {
  const auto image = image_path(id, run);
  ADL_TRY_STATUS(make_folder(fmt::format("{}/logs/{}", config_.state_dir, id.str()), 0700));
  // Of an attempt at this run's container that failed before anything of it ran.
  ::unlink(final_path(id, run).c_str());
  if (!path_exists(image)) {
    ADL_TRY_STATUS(disks_.check_space(config_.log_disk_bytes));
    const auto blank = fmt::format("{}/logs/blank-{}", config_.state_dir, config_.log_disk_bytes);
    crash_point("runtime.log_disk.before");
    ADL_TRY_STATUS(copy_sparse(blank, image + ".new"));
    if (::rename((image + ".new").c_str(), image.c_str()) != 0)
      return log_error("rename", image + ".new", errno);
    crash_point("runtime.log_disk.after");
  }
  ADL_TRY_STATUS(mount_ext4_image(image, mount_point(id)));
  ADL_TRY_STATUS(make_folder(mount_point(id), 0700));
  const auto path = live_path(id, run);
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!fd.valid()) return log_error("create log", path, errno);
  keep(id, run);
  return path;
}

void LogStore::keep(const InstanceId& id, const RunId& run) {
  UniqueFd fd(::open(live_path(id, run).c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
  if (!fd.valid()) return;
  {
    const std::lock_guard lock(mutex_);
    kept_.insert_or_assign(id, Kept{std::move(fd), 0, false});
  }
  wake_.notify_all();
}

Status LogStore::archive(const InstanceId& id) {
  {
    const std::lock_guard lock(mutex_);
    kept_.erase(id);
  }
  const auto folder = fmt::format("{}/logs/{}", config_.state_dir, id.str());
  for (const auto& name : list_names(folder)) {
    if (name.ends_with(".new")) ::unlink((folder + "/" + name).c_str());
    if (!name.ends_with(".img")) continue;
    ADL_TRY_STATUS(archive_run(id, RunId(name.substr(0, name.size() - 4))));
  }
  prune(id);
  return {};
}

Status LogStore::archive_run(const InstanceId& id, const RunId& run) {
  const auto image = image_path(id, run);
  const auto done = final_path(id, run);
  if (!path_exists(done)) {
    if (is_mount_point(mount_point(id)) && !path_exists(live_path(id, run)))
      ADL_TRY_STATUS(unmount_all(mount_point(id), true));  // another run's
    ADL_TRY_STATUS(mount_ext4_image(image, mount_point(id)));
    if (path_exists(live_path(id, run))) {
      ADL_TRY_STATUS(copy_sparse(live_path(id, run), done + ".new"));
      crash_point("runtime.log_archive.before");
      if (::rename((done + ".new").c_str(), done.c_str()) != 0)
        return log_error("rename", done + ".new", errno);
      crash_point("runtime.log_archive.after");
    }
  }
  // A reader may still hold the file: it keeps what it has open, under no name.
  ADL_TRY_STATUS(unmount_all(mount_point(id), true));
  ::rmdir(mount_point(id).c_str());
  if (::unlink(image.c_str()) != 0 && errno != ENOENT) return log_error("delete", image, errno);
  return {};
}

// Run ids are ULIDs: sorted by name is sorted by time.
void LogStore::prune(const InstanceId& id) const {
  const auto folder = fmt::format("{}/logs/{}", config_.state_dir, id.str());
  auto names = list_names(folder);
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(".log"); });
  const auto kept = static_cast<std::size_t>(std::max(1, config_.log_runs_kept));
  for (std::size_t at = 0; at + kept < names.size(); ++at)
    ::unlink((folder + "/" + names[at]).c_str());
}

Status LogStore::forget(const InstanceId& id) {
  return remove_tree(fmt::format("{}/logs/{}", config_.state_dir, id.str()));
}

void LogStore::keep_all() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    for (auto& [id, log] : kept_) trim(log);
    // No event tells that a file has grown by a megabyte; fstat of a few files costs nothing.
    if (kept_.empty()) {
      wake_.wait(lock, [this] { return stopping_ || !kept_.empty(); });
    } else {
      wake_.wait_for(lock, kKeepInterval, [this] { return stopping_; });
    }
  }
}

void LogStore::trim(Kept& log) const {
  struct stat info{};
  struct statvfs space{};
  if (::fstat(log.fd.get(), &info) != 0 || ::fstatvfs(log.fd.get(), &space) != 0) return;
  const auto hole = log_hole(info.st_size, config_.log_head_bytes, config_.log_tail_bytes);
  const auto from = std::max(hole.from, log.freed_to);
  const bool full = static_cast<std::int64_t>(space.f_bavail * space.f_frsize) < kFullBelow;
  if (hole.to > from && ::fallocate(log.fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from,
                                    hole.to - from) == 0)
    log.freed_to = hole.to;
  if (full && !log.was_full) {
    const auto line = fmt::format(
        "{} stderr F [autodl] output was lost here: it came faster than it could be kept\n",
        to_rfc3339(SystemClock().utc_now()));
    // A torn line may stand before it.
    log.was_full = ::write(log.fd.get(), ("\n" + line).data(), line.size() + 1) > 0;
  }
  if (!full) log.was_full = false;
}

}  // namespace autodl::runtime
