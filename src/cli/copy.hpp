// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Files up and down, in parts whose hashes are checked; each file appears whole under its name or
// not at all.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/api.hpp"

namespace autodl::cli {

using CopyProgress =
    std::function<void(std::string_view name, std::int64_t done, std::int64_t size)>;

// A file becomes REMOTE (or REMOTE/name where remote ends in '/'); a folder's name is kept below
// a remote that ends in '/', else its contents become the remote folder. Nothing is sent where a
// local path is missing.
Status upload(Api& api, const std::string& instance, const std::vector<std::string>& local,
              const std::string& remote, const CopyProgress& progress);

// A remote file becomes LOCAL (or LOCAL/name where local is a folder); the contents of a remote
// folder become those of LOCAL. Names that would leave LOCAL are refused.
Status download(Api& api, const std::string& instance, const std::string& remote,
                const std::string& local, const CopyProgress& progress);

}  // namespace autodl::cli
