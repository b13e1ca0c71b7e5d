// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Small files and folders of the node's own: never a path that a tenant can write to, unless the
// name says so.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace autodl::runtime {

// mkdir -p; the last folder gets the mode (whatever umask says) and, unless -1, the owner.
Status make_folder(const std::string& path, mode_t mode, std::int64_t owner = -1);

// Temporary name, fsync, rename, fsync of the folder: after a crash the old or the new text.
Status write_durably(const std::string& path, std::string_view text, mode_t mode = 0600);
// The same without fsync, for what a reboot voids anyway.
Status write_atomically(const std::string& path, std::string_view text, mode_t mode = 0600,
                        std::int64_t owner = -1);

// At most max bytes. not_found where there is no such file.
Result<std::string> read_small_file(const std::string& path, std::size_t max = 1U << 20);
// The same for a file that a tenant may have made: O_NOFOLLOW, regular files only, not blocking.
Result<std::string> read_hostile_file(const std::string& path, std::size_t max);

bool path_exists(const std::string& path);                       // lstat
std::vector<std::string> list_names(const std::string& folder);  // without . and ..; sorted
// rm -rf that follows no link; absent is fine.
Status remove_tree(const std::string& path);
// Of a folder that a tenant filled, on its own file system, with nobody in it any more: holds three
// descriptors, however deep it is (remove_tree holds one per level, out of the whole node's).
// Leaves and clears away `path`.gone when it is cut off.
Status remove_hostile_tree(const std::string& path);

}  // namespace autodl::runtime
