// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The node's side: starts a file worker for one stream.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace autodl {

struct FileWorkerProcess {
  pid_t pid = 0;     // the caller's child: to be waited for
  UniqueFd channel;  // the asker's end; closing it ends the worker
};

struct FileWorkerSpec {
  std::string program;      // …/autodl-fileworker
  int user_namespace = -1;  // stays the caller's
  int mount_namespace = -1;
  std::string root;    // within the mount namespace; "" or "/": its root
  std::string cgroup;  // folder of a cgroup the worker is put into; "": none
};

// Blocks until the program runs (or could not be executed). Thread-safe.
Result<FileWorkerProcess> spawn_file_worker(const FileWorkerSpec& spec);

}  // namespace autodl
