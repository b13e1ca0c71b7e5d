// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "init/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/unique_fd.hpp"

namespace autodl::init {
namespace {

Status write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return errno_error("write", errno);
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

}  // namespace

Status write_file_atomic(const std::string& path, std::string_view bytes, mode_t mode) {
  const std::string part = path + ".new";
  unlink(part.c_str());
  UniqueFd file(open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file.valid()) return errno_error("create '" + part + "'", errno);
  if (auto written = write_all(file.get(), bytes); !written.ok())
    return written.error().context("'" + part + "'");
  if (fchmod(file.get(), mode) != 0 || fsync(file.get()) != 0)
    return errno_error("save '" + part + "'", errno);
  if (rename(part.c_str(), path.c_str()) != 0)
    return errno_error("rename to '" + path + "'", errno);
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  const UniqueFd dir(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (dir.valid()) fsync(dir.get());
  return {};
}

Result<std::string> read_small_file(const std::string& path, std::size_t bytes_max) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info{};
  if (!file.valid() || fstat(file.get(), &info) != 0)
    return errno_error("open '" + path + "'", errno);
  if (!S_ISREG(info.st_mode) || static_cast<std::size_t>(info.st_size) > bytes_max)
    return Error(ErrorKind::kInvalid, "bad_file", "'" + path + "' is not a small regular file");
  std::string bytes(bytes_max, '\0');
  std::size_t length = 0;
  while (length < bytes_max) {
    const ssize_t got = read(file.get(), bytes.data() + length, bytes_max - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("read '" + path + "'", errno);
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  bytes.resize(length);
  return bytes;
}

Status ensure_folder(const std::string& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) == 0) {
    chmod(path.c_str(), mode);  // whatever the umask
    return {};
  }
  struct stat info{};
  if (errno == EEXIST && stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
  return errno_error("make folder '" + path + "'", errno);
}

}  // namespace autodl::init
