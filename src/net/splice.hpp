// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// splice_both: copies bytes both ways between two connections until both directions have ended.
// An end on one side is passed on as a half-close; an error closes both.
#pragma once

#include "net/conn.hpp"

namespace autodl {

// Both must outlive the task and have no deadline, or one that the caller wants.
Task<void> splice_both(Conn& one, Conn& other);

}  // namespace autodl
