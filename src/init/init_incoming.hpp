// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Private to Init: a connection whose PROXY header is still coming.
#pragma once

#include <string>

#include "base/unique_fd.hpp"
#include "init/event_loop.hpp"
#include "init/init.hpp"

namespace autodl::init {

struct Init::Incoming {
  UniqueFd fd;
  std::string bytes;
  EventLoop::TimerId timer = 0;
};

}  // namespace autodl::init
