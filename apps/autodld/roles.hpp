// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The roles of autodld: each builds its objects, wires them and runs until SIGTERM.
#pragma once

#include "base/result.hpp"
#include "config.hpp"
#include "privileges.hpp"

namespace autodl {

Status run_control(const DaemonConfig& config);
Status run_gateway(const DaemonConfig& config);
Status run_node(const DaemonConfig& config);
// Ends every instance of this installation and removes what the node made (scripts/uninstall).
Status run_purge(const DaemonConfig& config);
// Prints the cards that the driver tells, by the names that [prices] takes.
Status run_cards(const DaemonConfig& config);

// Signals that stop a role are blocked at its very start (main), so that every thread inherits it.
void block_stop_signals();
// Blocks until SIGTERM or SIGINT.
void wait_for_stop_signal();

}  // namespace autodl
