// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/veil.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>

#include "base/unique_fd.hpp"
#include "runtime/host_files.hpp"

namespace autodl::runtime {
namespace {

constexpr const char* kCommands[] = {"shutdown", "poweroff", "halt"};

class VeilMaker {
 public:
  VeilMaker(std::string root, std::string target)
      : root_(std::move(root)),
        target_(std::move(target)),
        root_fd_(::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {}

  Status make() {
    if (!root_fd_.valid()) return errno_error(fmt::format("open image root '{}'", root_), errno);
    for (const char* folder : {"/usr/bin", "/usr/sbin", "/bin", "/sbin"}) {
      // The first must be there, for those who type the whole path; the others if the image has
      // them.
      const bool wanted = std::string_view(folder) == "/usr/bin";
      ADL_TRY_STATUS(add_commands(folder, wanted));
    }
    ADL_TRY_STATUS(add_folder("/opt/autodl", 0755));
    ADL_TRY_STATUS(add_folder("/root", 0700));
    ADL_TRY_STATUS(add_folder("/root/autodl-tmp", 0755));
    if (!lacks_workspace()) return {};
    return link("/root/autodl-tmp", "/workspace");
  }

 private:
  // O_PATH descriptor of a path inside the image, links followed within it.
  UniqueFd open_inside(const std::string& path, std::uint64_t flags) const {
    open_how how{};
    how.flags = flags | O_CLOEXEC;
    how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
    return UniqueFd(
        static_cast<int>(::syscall(SYS_openat2, root_fd_.get(), path.c_str(), &how, sizeof how)));
  }

  // Where a folder of the image really is: "/sbin" → "/usr/sbin".
  std::optional<std::string> real_folder(const std::string& path) const {
    const auto fd = open_inside(path, O_PATH | O_DIRECTORY);
    if (!fd.valid()) return std::nullopt;
    char buffer[4096];
    const auto length =
        ::readlink(fmt::format("/proc/self/fd/{}", fd.get()).c_str(), buffer, sizeof buffer);
    if (length <= 0) return std::nullopt;
    const std::string real(buffer, static_cast<std::size_t>(length));
    if (real == root_) return std::string{};
    if (!real.starts_with(root_ + "/")) return std::nullopt;
    return real.substr(root_.size());
  }

  // The entry itself, links not followed.
  std::optional<struct stat> entry(const std::string& path) const {
    const auto fd = open_inside(path, O_PATH | O_NOFOLLOW);
    struct stat info{};
    if (!fd.valid() || ::fstat(fd.get(), &info) != 0) return std::nullopt;
    return info;
  }

  // The real place of a folder that is there or could be made; nullopt: something is in its way.
  std::optional<std::string> place_for(const std::string& path) const {
    if (path == "/" || path.empty()) return std::string{};
    if (auto real = real_folder(path)) return real;
    if (entry(path)) return std::nullopt;
    const auto parent = std::filesystem::path(path).parent_path().string();
    auto place = place_for(parent);
    if (!place) return std::nullopt;
    return *place + path.substr(parent == "/" ? 0 : parent.size());
  }

  // Makes the folder and those above it in the layer, looking as they do in the image.
  Status mirror(const std::string& real, mode_t mode_if_new) {
    if (real.empty()) return {};
    ADL_TRY_STATUS(mirror(std::filesystem::path(real).parent_path() == "/"
                              ? std::string{}
                              : std::filesystem::path(real).parent_path().string(),
                          0755));
    const auto target = target_ + real;
    if (path_exists(target)) return {};
    ADL_TRY_STATUS(make_folder(target, mode_if_new));
    const auto info = entry(real);
    if (!info) return {};
    const timespec times[2] = {info->st_atim, info->st_mtim};
    if (::chown(target.c_str(), info->st_uid, info->st_gid) != 0 ||
        ::chmod(target.c_str(), info->st_mode & 07777) != 0 ||
        ::utimensat(AT_FDCWD, target.c_str(), times, 0) != 0)
      return errno_error(fmt::format("copy the mode of '{}'", real), errno);
    return {};
  }

  Status add_folder(const std::string& path, mode_t mode) {
    const auto real = place_for(path);
    if (!real) return {};  // a file is in the way: the mount will say so
    return mirror(*real, mode);
  }

  Status add_commands(const std::string& folder, bool wanted) {
    const auto real = wanted ? place_for(folder) : real_folder(folder);
    if (!real) return {};
    ADL_TRY_STATUS(mirror(*real, 0755));
    for (const char* name : kCommands) {
      const auto path = *real + "/" + name;
      const auto there = entry(path);
      if (there && S_ISDIR(there->st_mode)) continue;
      ADL_TRY_STATUS(link(fmt::format("/opt/autodl/sbin/{}", name), path));
    }
    return {};
  }

  Status link(const std::string& to, const std::string& path) {
    const auto target = target_ + path;
    if (::symlink(to.c_str(), target.c_str()) != 0 && errno != EEXIST)
      return errno_error(fmt::format("link '{}'", target), errno);
    return {};
  }

  bool lacks_workspace() const {
    const auto there = entry("/workspace");
    if (!there) return true;
    if (!S_ISDIR(there->st_mode)) return false;
    auto fd = open_inside("/workspace", O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!fd.valid()) return false;
    DIR* folder = ::fdopendir(fd.release());
    if (folder == nullptr) return false;
    int entries = 0;
    while (entries < 3 && ::readdir(folder) != nullptr) ++entries;
    ::closedir(folder);
    return entries == 2;  // "." and ".."
  }

  std::string root_;
  std::string target_;
  UniqueFd root_fd_;
};

}  // namespace

Status make_veil(const std::string& root, const std::string& path) {
  if (path_exists(path)) return {};
  const auto temporary = path + ".new";
  ADL_TRY_STATUS(remove_tree(temporary));
  ADL_TRY_STATUS(make_folder(temporary, 0755));
  ADL_TRY_STATUS(VeilMaker(root, temporary).make());
  if (::rename(temporary.c_str(), path.c_str()) != 0 && errno != EEXIST && errno != ENOTEMPTY)
    return errno_error(fmt::format("rename '{}'", temporary), errno);
  return {};
}

}  // namespace autodl::runtime
