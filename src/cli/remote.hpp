// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Commands inside an instance: exec by frames over an upgraded connection, ssh by the system's
// client with the host key pinned.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/api.hpp"

namespace autodl::cli {

struct ExecOptions {
  bool pty = false;
  std::string cwd;
};

// Runs argv inside and carries stdin, stdout and stderr; the remote exit code (128 + n where signal
// n killed it).
Result<int> exec_remote(Api& api, const std::string& instance, const std::vector<std::string>& argv,
                        const ExecOptions& options);

// Runs the system's ssh for an instance (as the API describes it); its exit code.
Result<int> ssh_remote(const boost::json::object& instance, const std::string& identity,
                       const std::vector<std::string>& arguments);

}  // namespace autodl::cli
