// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Giving up root for good: control and gateway read what strangers send.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"

namespace autodl {

struct SystemUser {
  uid_t uid = 0;
  gid_t gid = 0;
};

// kInvalid "no_user" with the command that makes it.
Result<SystemUser> find_user(const std::string& name);

// Becomes the user: no groups, no capabilities (bounding set included), no new privileges, no core
// files. Ends with the parent: SIGTERM when the supervisor dies.
Status drop_privileges(const SystemUser& user);

// A folder with this owner and mode; made where it is missing, mended where it is there.
Status ensure_folder(const std::string& path, uid_t owner, gid_t group, mode_t mode);

}  // namespace autodl
