// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "agent/instance_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/crash_point.hpp"
#include "base/unique_fd.hpp"

namespace autodl {

namespace {
constexpr std::size_t kFileBytesMax = 4 << 20;
constexpr std::array<const char*, 3> kFiles = {"host_key", "image.json", "run.json"};
}  // namespace

Status DiskInstanceFiles::put(const InstanceId& id, const std::string& name,
                              const std::string& bytes) {
  const auto folder = fmt::format("{}/{}", folder_, id.str());
  for (const auto& path : {folder_, folder})
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
      return errno_error(fmt::format("make folder '{}'", path), errno);
  const auto path = fmt::format("{}/{}", folder, name);
  const auto part = path + ".new";
  UniqueFd fd(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return errno_error(fmt::format("open '{}'", part), errno);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto written = ::write(fd.get(), bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_error(fmt::format("write '{}'", part), errno);
    done += static_cast<std::size_t>(written);
  }
  crash_point("files.put.before");
  if (::fdatasync(fd.get()) != 0) return errno_error(fmt::format("sync '{}'", part), errno);
  if (::rename(part.c_str(), path.c_str()) != 0)
    return errno_error(fmt::format("rename '{}'", part), errno);
  crash_point("files.put.after");
  return {};
}

Result<std::optional<std::string>> DiskInstanceFiles::get(const InstanceId& id,
                                                          const std::string& name) {
  const auto path = fmt::format("{}/{}/{}", folder_, id.str(), name);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid() && errno == ENOENT) return std::optional<std::string>{};
  if (!fd.valid()) return errno_error(fmt::format("open '{}'", path), errno);
  std::string bytes;
  std::array<char, 16384> chunk;
  for (;;) {
    const auto got = ::read(fd.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(fmt::format("read '{}'", path), errno);
    if (got == 0) return std::optional(std::move(bytes));
    bytes.append(chunk.data(), static_cast<std::size_t>(got));
    if (bytes.size() > kFileBytesMax)
      return Error(ErrorKind::kInternal, "file_too_big", fmt::format("'{}' is too big", path));
  }
}

Status DiskInstanceFiles::remove_all(const InstanceId& id) {
  for (const auto* name : kFiles) {
    const auto path = fmt::format("{}/{}/{}", folder_, id.str(), name);
    for (const auto& one : {path, path + ".new"})
      if (::unlink(one.c_str()) != 0 && errno != ENOENT)
        return errno_error(fmt::format("remove '{}'", one), errno);
  }
  return {};
}

}  // namespace autodl
