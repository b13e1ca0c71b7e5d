// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Named crash points: with AUTODL_CRASH_AT="name" (or "name:3" for the third passage) in the
// environment the process kills itself with SIGKILL there. The kill tests arm one before and
// after each durable write and each runc, mount and nft call. Costs one branch when unarmed.
#pragma once

namespace autodl {

void crash_point(const char* name);

}  // namespace autodl
