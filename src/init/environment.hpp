// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The one environment of an instance: image's and user's variables with sane defaults, for command,
// exec, terminals and (through /run/autodl/env and the toolbox's session shell) SSH alike.
#pragma once

#include <string>

#include "init/process.hpp"
#include "wire/init_messages.hpp"

namespace autodl::init {

// PATH: the image's (or user's) with the toolbox last; PYTHONPATH: with the SDK's folder last.
Environment make_environment(const InitSetup& setup);

// NUL-ended NAME=VALUE entries, as the session shell reads them.
std::string to_env_file(const Environment& environment);

}  // namespace autodl::init
