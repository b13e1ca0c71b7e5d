// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// run_process: a program to its end, under a deadline. Arguments are a list (no shell), the
// environment is a small fixed one, output is bounded, the process has a group of its own that is
// killed when the deadline passes. Blocks; safe from any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace autodl::runtime {

struct ProcessOptions {
  std::chrono::milliseconds deadline{20'000};
  std::string input;                  // to its standard input
  std::size_t output_max = 1U << 20;  // of each stream; what is more is dropped
  std::vector<std::string> env;       // "NAME=value", added to PATH, HOME and LC_ALL
  std::string cwd = "/";
  int network_namespace_fd = -1;                        // entered before exec
  int fd3 = -1;                                         // becomes descriptor 3
  std::function<void(std::string_view)> on_error_line;  // each line of standard error, as it comes
};

struct ProcessResult {
  int exit_code = 0;  // 128 + signal where it was killed
  std::string out;
  std::string err;
};

// Error: it could not be started (tool_missing) or ran past its deadline (tool_timeout).
Result<ProcessResult> run_process(const std::vector<std::string>& argv,
                                  const ProcessOptions& options = {});

// The same; an exit code other than 0 is an error (tool_failed) that carries its last words.
Result<ProcessResult> run_checked(const std::vector<std::string>& argv,
                                  const ProcessOptions& options = {});

}  // namespace autodl::runtime
