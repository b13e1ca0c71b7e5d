// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What the API asks of the node's stream socket (docs/dev/contracts.md §3): a descriptor for one
// stream into an instance. The link's StreamClient stands behind it; tests put their own there.
#pragma once

#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace autodl {

struct StreamWish {
  std::string kind;      // "exec", "pty", "file", "log"
  std::string instance;  // id
  std::string run;       // id; empty for a file stream
  std::string client;    // "10.0.0.7:50122"
  std::string local;     // "127.0.0.1:8480"
};

class StreamOpener {
 public:
  virtual ~StreamOpener() = default;
  // Blocks until the node has answered or the limit is over; called from several threads.
  virtual Result<UniqueFd> open(const StreamWish& wish, Millis limit) = 0;
};

}  // namespace autodl
