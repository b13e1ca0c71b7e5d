// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/loop_device.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>

#include "base/crash_point.hpp"
#include "runtime/host_files.hpp"
#include "runtime/mounts.hpp"
#include "runtime/process.hpp"

namespace autodl::runtime {
namespace {

constexpr int kAttempts = 64;

// One attach at a time in this process; other programs' races show as EBUSY and are retried.
std::mutex& attach_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::optional<LoopDevice> find_attached(const struct stat& image) {
  for (const auto& name : list_names("/sys/block")) {
    if (!name.starts_with("loop") || !path_exists("/sys/block/" + name + "/loop/backing_file"))
      continue;
    const auto path = "/dev/" + name;
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    loop_info64 info{};
    if (!fd.valid() || ::ioctl(fd.get(), LOOP_GET_STATUS64, &info) != 0) continue;
    if (info.lo_device == image.st_dev && info.lo_inode == image.st_ino)
      return LoopDevice{path, std::move(fd)};
  }
  return std::nullopt;
}

// Whether the kernel took the file (0) or its errno.
int configure(int loop, int file, const std::string& image_path, bool direct) {
  loop_config config{};
  config.fd = static_cast<__u32>(file);
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR | (direct ? LO_FLAGS_DIRECT_IO : 0);
  std::strncpy(reinterpret_cast<char*>(config.info.lo_file_name), image_path.c_str(),
               LO_NAME_SIZE - 1);
  return ::ioctl(loop, LOOP_CONFIGURE, &config) == 0 ? 0 : errno;
}

}  // namespace

Result<LoopDevice> attach_loop(const std::string& image_path) {
  UniqueFd file(::open(image_path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat info{};
  if (!file.valid() || ::fstat(file.get(), &info) != 0)
    return errno_error(fmt::format("open disk image '{}'", image_path), errno);
  const std::lock_guard lock(attach_mutex());
  if (auto found = find_attached(info)) return std::move(*found);
  UniqueFd control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (!control.valid()) return errno_error("open /dev/loop-control", errno);
  int error = EBUSY;
  for (int attempt = 0; attempt < kAttempts && error == EBUSY; ++attempt) {
    const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return errno_error("get a free loop device", errno, ErrorKind::kExhausted);
    const auto path = fmt::format("/dev/loop{}", number);
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!fd.valid()) return errno_error(fmt::format("open '{}'", path), errno);
    error = configure(fd.get(), file.get(), image_path, true);
    if (error == EINVAL) error = configure(fd.get(), file.get(), image_path, false);
    if (error == 0) return LoopDevice{path, std::move(fd)};
  }
  return errno_error(fmt::format("attach '{}' to a loop device", image_path), error);
}

Status make_ext4_image(const std::string& image_path, std::int64_t size_bytes) {
  const auto temporary = image_path + ".new";
  ::unlink(temporary.c_str());
  UniqueFd fd(::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid()) return errno_error(fmt::format("create '{}'", temporary), errno);
  if (::ftruncate(fd.get(), size_bytes) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return errno_error(fmt::format("size '{}'", temporary), error,
                       error == ENOSPC ? ErrorKind::kExhausted : ErrorKind::kInternal);
  }
  auto made = run_checked({"mkfs.ext4", "-q", "-F", "-m", "0", "-E",
                           "lazy_itable_init=1,lazy_journal_init=1,nodiscard", temporary});
  if (!made.ok() || ::fsync(fd.get()) != 0) {
    ::unlink(temporary.c_str());
    return made.ok() ? errno_error(fmt::format("sync '{}'", temporary), errno) : made.error();
  }
  crash_point("runtime.disk_rename.before");
  if (::rename(temporary.c_str(), image_path.c_str()) != 0)
    return errno_error(fmt::format("rename '{}'", temporary), errno);
  crash_point("runtime.disk_rename.after");
  return {};
}

Status mount_ext4_image(const std::string& image_path, const std::string& mount_point) {
  if (is_mount_point(mount_point)) return {};
  ADL_TRY_STATUS(make_folder(mount_point, 0711));
  ADL_TRY(device, attach_loop(image_path));
  crash_point("runtime.mount_disk.before");
  if (::mount(device.path.c_str(), mount_point.c_str(), "ext4", MS_NOSUID | MS_NODEV | MS_NOATIME,
              "discard,errors=remount-ro") != 0)
    return errno_error(fmt::format("mount '{}' at '{}'", image_path, mount_point), errno);
  crash_point("runtime.mount_disk.after");
  return {};
}

}  // namespace autodl::runtime
