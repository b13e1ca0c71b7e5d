// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// RootDir: paths inside an instance, resolved by the kernel against its root (openat2 with
// RESOLVE_IN_ROOT and RESOLVE_NO_MAGICLINKS): neither ".." nor any symlink leads out. Kernel file
// systems (proc, sys, cgroup, …) are refused: what lies there are no files of the instance.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "wire/file_messages.hpp"

namespace autodl::fileworker {

// A folder and a name in it: what a rename or an unlink works on.
struct Place {
  UniqueFd folder;
  std::string name;
};

class RootDir {
 public:
  explicit RootDir(UniqueFd root) : root_(std::move(root)) {}

  // Errors of all: not_found, not_a_directory, permission_denied, system_path, …
  // flags: of open(2). A last symlink is followed within the root, unless O_NOFOLLOW.
  Result<UniqueFd> open(std::string_view path, int flags) const;
  // The folder that holds path's last component. make_parents: folders that are absent, 0755.
  Result<Place> open_parent(std::string_view path, bool make_parents) const;
  // The folder itself, and those above it.
  Result<UniqueFd> make_folders(std::string_view path, mode_t mode) const;

 private:
  UniqueFd root_;
};

// An Error that says what to do, from a failed call on a path. fd: one on that file system, or -1;
// tells how full it is for ENOSPC.
Error file_error(std::string_view action, std::string_view path, int errno_value, int fd = -1);

// kInvalid special_file for what is neither file, folder nor symlink.
Status refuse_special(const struct stat& info, std::string_view path);
// kDenied system_path where the descriptor lies on a kernel file system.
Status refuse_system(int fd, std::string_view path);

std::string etag_of(const struct stat& info);
FileStat to_file_stat(const struct stat& info, std::string path);

// openat2 below a folder, following nothing. errno is set where the result is not valid.
UniqueFd open_beneath(int folder, const std::string& name, int flags);

}  // namespace autodl::fileworker
