// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/local_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/random.hpp"

namespace autodl::cli {
namespace {

Error local_error(std::string_view action, std::string_view path, int why) {
  return errno_error(fmt::format("{} '{}'", action, path), why, ErrorKind::kInvalid);
}

std::string temporary_name() {
  SystemRandom random;
  return ".autodl-part-" + random.hex(8);
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  for (;;) {
    const auto slash = text.find('/');
    parts.emplace_back(text.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    text.remove_prefix(slash + 1);
  }
}

}  // namespace

Result<std::vector<std::string>> path_parts(std::string_view relative) {
  auto parts = split(relative);
  for (const auto& part : parts)
    if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string::npos)
      return Error(ErrorKind::kInvalid, "bad_path",
                   fmt::format("the listing names a path outside the folder: '{}'", relative),
                   "nothing was written there");
  return parts;
}

bool link_stays_inside(const std::vector<std::string>& parts, std::string_view target) {
  if (target.empty() || target.front() == '/' || target.find('\0') != std::string_view::npos)
    return false;
  auto steps = split(target);
  std::erase_if(steps, [](const std::string& step) { return step.empty() || step == "."; });
  const auto first = std::find_if(steps.begin(), steps.end(),
                                  [](const std::string& step) { return step != ".."; });
  return static_cast<std::size_t>(first - steps.begin()) + 1 <= parts.size() &&
         std::find(first, steps.end(), "..") == steps.end();
}

Result<LocalFolder> LocalFolder::open(const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return local_error("open the folder", path, errno);
  return LocalFolder(path, std::move(fd));
}

Result<UniqueFd> LocalFolder::folder(const std::vector<std::string>& parts) const {
  UniqueFd at(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 3));
  std::string shown = path_;
  for (const auto& part : parts) {
    shown += "/" + part;
    if (::mkdirat(at.get(), part.c_str(), 0777) != 0 && errno != EEXIST)
      return local_error("make the folder", shown, errno);
    const int next =
        ::openat(at.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0 && (errno == ENOTDIR || errno == ELOOP))
      return Error(ErrorKind::kInvalid, "in_the_way",
                   fmt::format("'{}' is in the way: it is no folder", shown),
                   "links are not followed; remove it, or choose another folder");
    if (next < 0) return local_error("open the folder", shown, errno);
    at.reset(next);
  }
  if (!at.valid()) return local_error("open the folder", path_, errno);
  return at;
}

Status LocalFolder::link(const std::vector<std::string>& parts, const std::string& target) const {
  ADL_TRY(at, folder({parts.begin(), parts.end() - 1}));
  const auto temporary = temporary_name();
  if (::symlinkat(target.c_str(), at.get(), temporary.c_str()) != 0)
    return local_error("make the link", parts.back(), errno);
  if (::renameat(at.get(), temporary.c_str(), at.get(), parts.back().c_str()) == 0) return {};
  const int why = errno;
  ::unlinkat(at.get(), temporary.c_str(), 0);
  return local_error("make the link", parts.back(), why);
}

Result<PartFile> PartFile::make(const UniqueFd& folder, std::string name) {
  auto temporary = temporary_name();
  UniqueFd fd(::openat(folder.get(), temporary.c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return local_error("write", name, errno);
  return PartFile(folder.get(), std::move(name), std::move(temporary), std::move(fd));
}

PartFile::~PartFile() {
  if (fd_.valid()) ::unlinkat(folder_, temporary_.c_str(), 0);
}

Status PartFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return local_error("write", name_, errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Status PartFile::finish(std::uint32_t mode, std::int64_t mtime_ms) {
  const timespec changed{mtime_ms / 1000, (mtime_ms % 1000) * 1'000'000};
  const timespec times[] = {changed, changed};
  if (::fchmod(fd_.get(), (mode & 0777U) | 0400U) != 0 ||
      (mtime_ms > 0 && ::futimens(fd_.get(), times) != 0) ||
      ::renameat(folder_, temporary_.c_str(), folder_, name_.c_str()) != 0)
    return local_error("write", name_, errno);
  fd_.reset();
  return {};
}

}  // namespace autodl::cli
