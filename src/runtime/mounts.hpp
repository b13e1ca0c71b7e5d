// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Mounts: the table as the kernel tells it, and the few calls the runtime makes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace autodl::runtime {

struct MountEntry {
  std::string mount_point;
  std::string root;  // of the mount within its file system
  std::string fstype;
  std::string source;
  bool shared = false;  // propagates to others
  bool operator==(const MountEntry&) const = default;
};

// Lines of /proc/self/mountinfo; escapes undone, lines that make no sense left out.
std::vector<MountEntry> parse_mountinfo(std::string_view text);

// Whether something is mounted at this very path.
bool is_mount_point(const std::string& path);
// The same, and it is an overlay.
bool is_overlay_mount(const std::string& path);

// Makes the folder a private bind mount of itself, so that no mount below it propagates anywhere.
Status ensure_private_tree(const std::string& path);

// Unmounts all that is mounted at path; absent is fine. Error: busy, unless detach.
Status unmount_all(const std::string& path, bool detach = false);

}  // namespace autodl::runtime
