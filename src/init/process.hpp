// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Programs that init starts: found in the PATH they are given, in a session of their own, with no
// descriptor but 0-2, default signals. Children tells whose exit it was.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "wire/init_messages.hpp"

namespace autodl::init {

using Environment = std::map<std::string, std::string>;

struct ProcessSpec {
  std::vector<std::string> argv;  // argv[0] without '/': looked up in env's PATH
  Environment env;
  std::string cwd;
  int stdin_fd = -1;  // -1: /dev/null
  int stdout_fd = -1;
  int stderr_fd = -1;
  bool terminal = false;  // stdin_fd is the terminal of the new session
};

// Blocks until the program has been executed, or could not be: command_not_found, not_executable,
// bad_cwd (kInvalid), spawn_failed (kExhausted).
Result<pid_t> start_process(const ProcessSpec& spec);

// /bin/sh, or the toolbox's where the image has none.
std::string shell_path();

// Whose process it was that ended. Processes nobody waits for are reaped all the same.
class Children {
 public:
  using Handler = std::function<void(ExitStatus)>;
  void on_exit(pid_t pid, Handler handler) { handlers_[pid] = std::move(handler); }
  void forget(pid_t pid) { handlers_.erase(pid); }
  // Reaps all that have ended and calls their handlers.
  void reap();

 private:
  std::map<pid_t, Handler> handlers_;
};

}  // namespace autodl::init
