// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/mounts.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <cerrno>

#include "base/crash_point.hpp"

namespace autodl::runtime {
namespace {

// "\040" → " ": the kernel writes space, tab, newline and backslash in octal.
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto digit = [&](std::size_t n) { return text[at + n] >= '0' && text[at + n] <= '7'; };
    if (text[at] == '\\' && at + 3 < text.size() && digit(1) && digit(2) && digit(3)) {
      out += static_cast<char>((text[at + 1] - '0') * 64 + (text[at + 2] - '0') * 8 +
                               (text[at + 3] - '0'));
      at += 3;
    } else {
      out += text[at];
    }
  }
  return out;
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  while (!line.empty()) {
    const auto end = line.find(' ');
    if (end != 0) fields.push_back(line.substr(0, end));
    if (end == std::string_view::npos) break;
    line.remove_prefix(end + 1);
  }
  return fields;
}

}  // namespace

std::vector<MountEntry> parse_mountinfo(std::string_view text) {
  std::vector<MountEntry> table;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto fields = fields_of(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (fields.size() < 10) continue;
    MountEntry entry{unescape(fields[4]), unescape(fields[3]), {}, {}, false};
    std::size_t at = 6;
    for (; at < fields.size() && fields[at] != "-"; ++at)
      entry.shared = entry.shared || fields[at].starts_with("shared:");
    if (at + 2 >= fields.size()) continue;
    entry.fstype = std::string(fields[at + 1]);
    entry.source = unescape(fields[at + 2]);
    table.push_back(std::move(entry));
  }
  return table;
}

bool is_mount_point(const std::string& path) {
  struct statx info{};
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &info) !=
      0)
    return false;
  return (info.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

bool is_overlay_mount(const std::string& path) {
  struct statfs info{};
  return is_mount_point(path) && ::statfs(path.c_str(), &info) == 0 &&
         info.f_type == OVERLAYFS_SUPER_MAGIC;
}

Status ensure_private_tree(const std::string& path) {
  if (!is_mount_point(path) && ::mount(path.c_str(), path.c_str(), nullptr, MS_BIND, nullptr) != 0)
    return errno_error(fmt::format("bind '{}' to itself", path), errno);
  if (::mount(nullptr, path.c_str(), nullptr, MS_PRIVATE, nullptr) != 0)
    return errno_error(fmt::format("make '{}' private", path), errno);
  return {};
}

Status unmount_all(const std::string& path, bool detach) {
  while (is_mount_point(path)) {
    crash_point("runtime.umount.before");
    if (::umount2(path.c_str(), UMOUNT_NOFOLLOW | (detach ? MNT_DETACH : 0)) != 0) {
      const int error = errno;
      if (error == EINVAL || error == ENOENT) return {};
      return errno_error(fmt::format("unmount '{}'", path), error, ErrorKind::kUnavailable);
    }
    crash_point("runtime.umount.after");
  }
  return {};
}

}  // namespace autodl::runtime
