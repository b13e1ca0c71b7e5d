// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// How a file worker becomes harmless before it touches anything of a tenant's: into the instance's
// user and mount namespace, below its root, uid 0 of that user namespace with four capabilities,
// no new privileges, and a list of allowed system calls (any other kills it).
#pragma once

#include <string>

#include "base/result.hpp"

namespace autodl::fileworker {

// user_fd, mount_fd: namespaces; root: path within the mount namespace ("" or "/": its root). The
// process must be root of the host. Afterwards "/" is the instance's root.
Status enter_namespaces(int user_fd, int mount_fd, const std::string& root);

// Keeps CHOWN, DAC_OVERRIDE, FOWNER, FSETID; limits; the seccomp filter last.
Status drop_privileges();

}  // namespace autodl::fileworker
