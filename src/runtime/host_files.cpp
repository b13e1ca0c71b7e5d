// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/host_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "base/unique_fd.hpp"

namespace autodl::runtime {
namespace {

ErrorKind kind_of(int error) {
  if (error == ENOENT) return ErrorKind::kNotFound;
  if (error == ENOSPC || error == EDQUOT) return ErrorKind::kExhausted;
  return ErrorKind::kInternal;
}

Error file_error(std::string_view action, const std::string& path, int error) {
  return errno_error(fmt::format("{} '{}'", action, path), error, kind_of(error));
}

Result<std::string> read_from(int fd, const std::string& path, std::size_t max) {
  std::string text;
  char buffer[16384];
  while (text.size() < max) {
    const auto got = ::read(fd, buffer, std::min(sizeof buffer, max - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error("read", path, errno);
    if (got == 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

Status write_file(const std::string& path, std::string_view text, mode_t mode, std::int64_t owner,
                  bool durable) {
  const auto temporary = path + ".new";
  UniqueFd fd(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return file_error("create", temporary, errno);
  while (!text.empty()) {
    const auto sent = ::write(fd.get(), text.data(), text.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return file_error("write", temporary, errno);
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  const auto id = static_cast<uid_t>(owner);
  if (owner >= 0 && ::fchown(fd.get(), id, id) != 0) return file_error("own", temporary, errno);
  if (::fchmod(fd.get(), mode) != 0) return file_error("set the mode of", temporary, errno);
  if (durable && ::fsync(fd.get()) != 0) return file_error("sync", temporary, errno);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return file_error("rename", temporary, errno);
  if (!durable) return {};
  const auto folder = std::filesystem::path(path).parent_path().string();
  UniqueFd parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent.valid() || ::fsync(parent.get()) != 0) return file_error("sync", folder, errno);
  return {};
}

}  // namespace

Status make_folder(const std::string& path, mode_t mode, std::int64_t owner) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (failed) return file_error("make folder", path, failed.value());
  const auto id = static_cast<uid_t>(owner);
  if (owner >= 0 && ::lchown(path.c_str(), id, id) != 0) return file_error("own", path, errno);
  if (::chmod(path.c_str(), mode) != 0) return file_error("set the mode of", path, errno);
  return {};
}

Status write_durably(const std::string& path, std::string_view text, mode_t mode) {
  return write_file(path, text, mode, -1, true);
}

Status write_atomically(const std::string& path, std::string_view text, mode_t mode,
                        std::int64_t owner) {
  return write_file(path, text, mode, owner, false);
}

Result<std::string> read_small_file(const std::string& path, std::size_t max) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return file_error("open", path, errno);
  return read_from(fd.get(), path, max);
}

Result<std::string> read_hostile_file(const std::string& path, std::size_t max) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd.valid()) return file_error("open", path, errno);
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return file_error("stat", path, errno);
  if (!S_ISREG(info.st_mode)) {
    return Error(ErrorKind::kInvalid, "not_a_file",
                 fmt::format("'{}' is not a regular file", path));
  }
  return read_from(fd.get(), path, max);
}

bool path_exists(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0;
}

std::vector<std::string> list_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  std::filesystem::directory_iterator entry(folder, failed);
  for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed))
    names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

Status remove_tree(const std::string& path) {
  std::error_code failed;
  std::filesystem::remove_all(path, failed);
  if (failed) return file_error("remove", path, failed.value());
  return {};
}

namespace {

using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

Folder open_folder(int parent, const char* name) {
  UniqueFd fd(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  Folder folder(fd.valid() ? ::fdopendir(fd.get()) : nullptr, &::closedir);
  if (folder) fd.release();
  return folder;
}

bool is_dots(std::string_view name) {
  return name == "." || name == "..";
}

// Moves a folder into `trash` under a name that nothing there has.
bool move_to(int trash, int from, const char* name, std::size_t& serial) {
  for (;;) {
    if (::renameat(from, name, trash, std::to_string(serial++).c_str()) == 0) return true;
    if (errno != EEXIST && errno != ENOTEMPTY) return false;
  }
}

// Removes the files of trash/NAME, moves its folders up into `trash`, and removes it.
bool take_apart(int trash, const char* name, std::size_t& serial) {
  const auto folder = open_folder(trash, name);
  if (!folder) return false;
  const int at = ::dirfd(folder.get());
  while (const dirent* entry = ::readdir(folder.get())) {
    if (is_dots(entry->d_name) || ::unlinkat(at, entry->d_name, 0) == 0) continue;
    if (errno != EISDIR || !move_to(trash, at, entry->d_name, serial)) return false;
  }
  return ::unlinkat(trash, name, AT_REMOVEDIR) == 0 || errno == ENOTEMPTY;
}

}  // namespace

Status remove_hostile_tree(const std::string& path) {
  const auto trash_path = path + ".gone";
  if (::mkdir(trash_path.c_str(), 0700) != 0 && errno != EEXIST)
    return file_error("make folder", trash_path, errno);
  const UniqueFd trash(::open(trash_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::size_t serial = 0;
  if (!trash.valid()) return file_error("open", trash_path, errno);
  if (!move_to(trash.get(), AT_FDCWD, path.c_str(), serial) && errno != ENOENT)
    return file_error("remove", path, errno);
  for (bool empty = false; !empty;) {
    const auto folder = open_folder(trash.get(), ".");
    if (!folder) return file_error("list", trash_path, errno);
    empty = true;
    while (const dirent* entry = ::readdir(folder.get())) {
      if (is_dots(entry->d_name)) continue;
      empty = false;
      if (!take_apart(trash.get(), entry->d_name, serial)) return file_error("remove", path, errno);
    }
  }
  if (::rmdir(trash_path.c_str()) != 0) return file_error("remove", trash_path, errno);
  return {};
}

}  // namespace autodl::runtime
