// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "fileworker/root_dir.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

namespace autodl::fileworker {
namespace {

constexpr int kRaceRetries = 16;  // EAGAIN: something was renamed during the walk
constexpr int kFoldersMax = 256;
constexpr decltype(statfs::f_type) kMqueueMagic = 0x19800202;
constexpr std::array<decltype(statfs::f_type), 13> kKernelFileSystems{
    PROC_SUPER_MAGIC, SYSFS_MAGIC,    CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEVPTS_SUPER_MAGIC,
    DEBUGFS_MAGIC,    TRACEFS_MAGIC,  SECURITYFS_MAGIC,   BPF_FS_MAGIC,        NSFS_MAGIC,
    kMqueueMagic,     BINFMTFS_MAGIC, SELINUX_MAGIC};

UniqueFd open_at(int folder, const std::string& path, int flags, unsigned long long resolve) {
  open_how how{};
  how.flags = static_cast<unsigned>(flags | O_CLOEXEC);
  how.resolve = resolve;
  for (int attempt = 0;; ++attempt) {
    const long fd = syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how);
    if (fd >= 0) return UniqueFd(static_cast<int>(fd));
    if ((errno != EAGAIN && errno != EINTR) || attempt >= kRaceRetries) return {};
  }
}

std::string mebibytes(unsigned long long bytes) {
  return fmt::format("{} MiB", bytes >> 20);
}

// "the disk is full (10 of 10 MiB used)", or its inodes.
std::string fullness(int fd) {
  struct statfs info{};
  if (fd < 0 || fstatfs(fd, &info) != 0 || info.f_bsize <= 0) return "the instance's disk is full";
  const auto block = static_cast<unsigned long long>(info.f_bsize);
  if (info.f_files > 0 && info.f_ffree == 0)
    return fmt::format("the instance's disk holds no more files ({} of {} in use)", info.f_files,
                       info.f_files);
  return fmt::format("the instance's disk is full ({} of {} used)",
                     mebibytes((info.f_blocks - info.f_bfree) * block),
                     mebibytes(info.f_blocks * block));
}

std::pair<std::string, std::string> split(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const auto slash = path.rfind('/');
  return {std::string(path.substr(0, slash == 0 ? 1 : slash)), std::string(path.substr(slash + 1))};
}

}  // namespace

Error file_error(std::string_view action, std::string_view path, int errno_value, int fd) {
  const auto make = [&](ErrorKind kind, std::string code, std::string_view why,
                        std::string remedy) {
    return Error(kind, std::move(code), fmt::format("{} '{}': {}", action, path, why),
                 std::move(remedy));
  };
  switch (errno_value) {
    case ENOSPC:
    case EDQUOT:
      return make(ErrorKind::kExhausted, "no_space", fullness(fd),
                  "delete files in the instance, or create one with a larger disk");
    case ENOENT:
      return make(ErrorKind::kNotFound, "not_found", "no such file or folder",
                  "look with `autodl exec ID -- ls` or list the folder");
    case ENOTDIR:
      return make(ErrorKind::kInvalid, "not_a_directory", "a part of the path is not a folder",
                  "choose another path");
    case EISDIR:
      return make(ErrorKind::kInvalid, "is_a_directory", "it is a folder",
                  "name a file in it, or choose another path");
    case ELOOP:
      return make(ErrorKind::kInvalid, "symlink_refused",
                  "too many symlinks, or one that leads out of the files", "choose another path");
    case EXDEV:
      return make(ErrorKind::kInvalid, "symlink_refused", "the path leads out of the instance",
                  "choose another path");
    case EACCES:
    case EPERM:
      return make(ErrorKind::kDenied, "permission_denied", "not permitted",
                  "the file may be read-only or belong to the platform: choose another path");
    case EROFS:
      return make(ErrorKind::kDenied, "read_only", "the file system is read-only",
                  "choose a path under /root or /root/autodl-tmp");
    case EEXIST:
      return make(ErrorKind::kConflict, "exists", "something else is in the way there",
                  "choose another path");
    case ENAMETOOLONG:
      return make(ErrorKind::kInvalid, "bad_path", "the path is too long", "shorten it");
    case EFBIG:
      return make(ErrorKind::kInvalid, "too_large", "the file is too large for the file system",
                  "split it");
    default:
      return make(ErrorKind::kInternal, "io_error", std::strerror(errno_value),
                  "try again; if it stays so, tell the operator");
  }
}

Status refuse_special(const struct stat& info, std::string_view path) {
  if (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode) || S_ISLNK(info.st_mode)) return {};
  const char* what = S_ISFIFO(info.st_mode)   ? "a FIFO"
                     : S_ISSOCK(info.st_mode) ? "a socket"
                                              : "a device";
  return Error(ErrorKind::kInvalid, "special_file",
               fmt::format("'{}' is {}, not a file", path, what), "choose another path");
}

Status refuse_system(int fd, std::string_view path) {
  struct statfs info{};
  if (fstatfs(fd, &info) != 0) return file_error("look at", path, errno);
  for (const auto magic : kKernelFileSystems) {
    if (info.f_type == magic)
      return Error(ErrorKind::kDenied, "system_path",
                   fmt::format("'{}' belongs to the kernel, not to the instance's files", path),
                   "choose another path");
  }
  return {};
}

std::string etag_of(const struct stat& info) {
  return fmt::format(
      "{:x}-{:x}-{:x}", info.st_ino, info.st_size,
      static_cast<long long>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec);
}

FileStat to_file_stat(const struct stat& info, std::string path) {
  FileStat stat;
  stat.path = std::move(path);
  stat.type = S_ISREG(info.st_mode)   ? FileType::kFile
              : S_ISDIR(info.st_mode) ? FileType::kDirectory
              : S_ISLNK(info.st_mode) ? FileType::kSymlink
                                      : FileType::kOther;
  stat.size = S_ISDIR(info.st_mode) ? 0 : info.st_size;
  stat.mode = info.st_mode & 07777;
  stat.mtime_ns =
      static_cast<std::int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec;
  if (S_ISREG(info.st_mode)) stat.etag = etag_of(info);
  return stat;
}

UniqueFd open_beneath(int folder, const std::string& name, int flags) {
  return open_at(folder, name, flags | O_NOFOLLOW | O_NONBLOCK,
                 RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

Result<UniqueFd> RootDir::open(std::string_view path, int flags) const {
  // O_PATH first: a FIFO or a device is seen for what it is before anything opens it.
  UniqueFd found = open_at(root_.get(), std::string(path), O_PATH | (flags & O_NOFOLLOW),
                           RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
  if (!found.valid()) return file_error("open", path, errno);
  struct stat info{};
  if (fstat(found.get(), &info) != 0) return file_error("open", path, errno);
  ADL_TRY_STATUS(refuse_special(info, path));
  ADL_TRY_STATUS(refuse_system(found.get(), path));
  if ((flags & O_PATH) != 0) return found;
  UniqueFd opened = open_at(root_.get(), std::string(path), flags | O_NONBLOCK | O_NOCTTY,
                            RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
  if (!opened.valid()) return file_error("open", path, errno);
  struct stat again{};
  if (fstat(opened.get(), &again) != 0) return file_error("open", path, errno);
  ADL_TRY_STATUS(refuse_special(again, path));  // it may have been exchanged in between
  ADL_TRY_STATUS(refuse_system(opened.get(), path));
  return opened;
}

Result<UniqueFd> RootDir::make_folders(std::string_view path, mode_t mode) const {
  // From the deepest that exists downwards.
  std::vector<std::string> missing;
  std::string at(path);
  UniqueFd folder;
  for (;;) {
    folder = open_at(root_.get(), at, O_RDONLY | O_DIRECTORY | O_NONBLOCK,
                     RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
    if (folder.valid()) break;
    if (errno != ENOENT || at == "/" || missing.size() >= kFoldersMax)
      return file_error("open folder", at, errno);
    auto [above, name] = split(at);
    missing.push_back(std::move(name));
    at = std::move(above);
  }
  ADL_TRY_STATUS(refuse_system(folder.get(), at));
  while (!missing.empty()) {
    const std::string name = std::move(missing.back());
    missing.pop_back();
    const mode_t wanted = missing.empty() ? mode : 0755;
    const bool made = mkdirat(folder.get(), name.c_str(), wanted) == 0;
    if (!made && errno != EEXIST) return file_error("make folder", path, errno, folder.get());
    UniqueFd next = open_beneath(folder.get(), name, O_RDONLY | O_DIRECTORY);
    // A symlink to nowhere: it is in the way, and is not filled by following it.
    if (!next.valid()) {
      const bool in_the_way = !made && (errno == ELOOP || errno == ENOTDIR);
      return file_error("make folder", path, in_the_way ? EEXIST : errno);
    }
    if (made) fchmod(next.get(), wanted);
    folder = std::move(next);
  }
  return folder;
}

Result<Place> RootDir::open_parent(std::string_view path, bool make_parents) const {
  auto [above, name] = split(path);
  if (name.empty())
    return Error(ErrorKind::kInvalid, "is_a_directory", "'/' is a folder", "name a file");
  if (path.back() == '/')
    return Error(ErrorKind::kInvalid, "is_a_directory",
                 fmt::format("'{}' names a folder (it ends in '/')", path), "name a file");
  auto folder = make_parents ? make_folders(above, 0755) : open(above, O_RDONLY | O_DIRECTORY);
  if (!folder.ok()) return folder.error();
  return Place{std::move(folder).value(), std::move(name)};
}

}  // namespace autodl::fileworker
