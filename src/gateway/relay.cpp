// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "gateway/relay.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace autodl {

namespace {
constexpr std::size_t kChunkBytes = 64 << 10;
// One connection may not keep the loop to itself: after this much it waits its turn.
constexpr int kRoundsMax = 16;

bool would_block() {
  return errno == EAGAIN || errno == EINTR;
}
}  // namespace

Relay::Relay(UniqueFd client, UniqueFd inside) : a_(std::move(client)), b_(std::move(inside)) {
  for (auto* direction : {&forward_, &backward_}) {
    int ends[2];
    if (::pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0) {
      direction->pipe_read.reset(ends[0]);
      direction->pipe_write.reset(ends[1]);
    }
  }
}

bool Relay::fill(Direction& direction, int from, bool& moved) {
  if (direction.eof) return true;
  if (direction.pipe_write.valid()) {
    if (direction.in_pipe > 0) return true;  // drain first: keeps the accounting simple
    const auto got = ::splice(from, nullptr, direction.pipe_write.get(), nullptr, kChunkBytes,
                              SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (got < 0) return would_block();
    direction.eof = got == 0;
    direction.in_pipe += static_cast<std::size_t>(got);
    moved = moved || got > 0;
    return true;
  }
  if (!direction.buffer.empty()) return true;
  char chunk[16 << 10];
  const auto got = ::recv(from, chunk, sizeof chunk, MSG_DONTWAIT);
  if (got < 0) return would_block();
  direction.eof = got == 0;
  direction.buffer.append(chunk, static_cast<std::size_t>(got));
  moved = moved || got > 0;
  return true;
}

bool Relay::drain(Direction& direction, int to, bool& moved) {
  ssize_t sent = 0;
  if (direction.in_pipe > 0) {
    sent = ::splice(direction.pipe_read.get(), nullptr, to, nullptr, direction.in_pipe,
                    SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (sent < 0) return would_block();
    direction.in_pipe -= static_cast<std::size_t>(sent);
  } else if (!direction.buffer.empty()) {
    sent =
        ::send(to, direction.buffer.data(), direction.buffer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return would_block();
    direction.buffer.erase(0, static_cast<std::size_t>(sent));
  }
  carried_ += static_cast<std::uint64_t>(sent);
  moved = moved || sent > 0;
  if (direction.eof && !direction.shut && direction.in_pipe == 0 && direction.buffer.empty()) {
    direction.shut = true;
    ::shutdown(to, SHUT_WR);
  }
  return true;
}

Relay::Progress Relay::pump_direction(Direction& direction, int from, int to) {
  for (int round = 0; round < kRoundsMax; ++round) {
    bool moved = false;
    if (!fill(direction, from, moved)) return Progress::kOver;
    if (!drain(direction, to, moved)) return Progress::kOver;
    if (!moved) return Progress::kWait;
  }
  return Progress::kAgain;
}

Relay::Progress Relay::pump() {
  const auto forward = pump_direction(forward_, a_.get(), b_.get());
  const auto backward = pump_direction(backward_, b_.get(), a_.get());
  if (forward == Progress::kOver || backward == Progress::kOver) return Progress::kOver;
  if (forward_.shut && backward_.shut) return Progress::kOver;
  const bool again = forward == Progress::kAgain || backward == Progress::kAgain;
  return again ? Progress::kAgain : Progress::kWait;
}

}  // namespace autodl
