// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Relay: carries bytes between two connected stream sockets, both directions, each with its own
// end of file. Non-blocking; driven by an epoll loop: pump() after each event until it wants to
// wait. Spliced through a pipe per direction; where no pipe can be had (the per-user pipe limit),
// copied through a small buffer.
#pragma once

#include <cstdint>
#include <string>

#include "base/unique_fd.hpp"

namespace autodl {

class Relay {
 public:
  Relay(UniqueFd client, UniqueFd inside);

  int client_fd() const { return a_.get(); }
  int inside_fd() const { return b_.get(); }
  std::uint64_t carried_bytes() const { return carried_; }

  enum class Progress {
    kWait,   // nothing can move until a descriptor is ready again
    kAgain,  // it took its share of the loop and there may be more: call again
    kOver,   // both directions ended, or one side broke
  };
  Progress pump();

 private:
  struct Direction {
    UniqueFd pipe_read, pipe_write;  // invalid: copy through buffer
    std::size_t in_pipe = 0;
    std::string buffer;
    bool eof = false;   // the source ended
    bool shut = false;  // and the sink was told
  };
  Progress pump_direction(Direction& direction, int from, int to);  // kOver: broken
  bool fill(Direction& direction, int from, bool& moved);
  bool drain(Direction& direction, int to, bool& moved);

  UniqueFd a_, b_;
  Direction forward_, backward_;
  std::uint64_t carried_ = 0;
};

}  // namespace autodl
