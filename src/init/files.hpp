// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// init's small files, written whole or not at all.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace autodl::init {

// Beside the target, fsynced, then renamed over it (also over a symlink, which is not followed);
// the folder is fsynced, so that the file outlives a crash.
Status write_file_atomic(const std::string& path, std::string_view bytes, mode_t mode);

// At most bytes_max bytes of a regular file; symlinks are not followed.
Result<std::string> read_small_file(const std::string& path, std::size_t bytes_max);

// Makes the folder where it is absent. A problem is the caller's to ignore.
Status ensure_folder(const std::string& path, mode_t mode);

}  // namespace autodl::init
