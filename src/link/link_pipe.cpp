// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "link/link_pipe.hpp"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace autodl {

Result<std::vector<Frame>> LinkPipe::read() {
  std::vector<Frame> frames;
  std::array<char, 65536> chunk;
  // Bounded, so that a peer that never stops sending does not keep the loop.
  for (int i = 0; i < 16; ++i) {
    const auto got = ::recv(fd_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got < 0) return errno_error("read from the link", errno, ErrorKind::kUnavailable);
    if (got == 0) return Error(ErrorKind::kUnavailable, "link_closed", "the other end has closed");
    reader_.put({chunk.data(), static_cast<std::size_t>(got)});
    for (;;) {
      ADL_TRY(frame, reader_.next());
      if (!frame) break;
      frames.push_back(std::move(*frame));
    }
  }
  return frames;
}

Status LinkPipe::write() {
  while (sent_ < out_.size()) {
    const auto sent =
        ::send(fd_.get(), out_.data() + sent_, out_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
    if (sent < 0) return errno_error("write to the link", errno, ErrorKind::kUnavailable);
    sent_ += static_cast<std::size_t>(sent);
  }
  out_.clear();
  sent_ = 0;
  return {};
}

Waker::Waker() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Waker::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(fd_.get(), &one, sizeof one);
}

void Waker::drain() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(fd_.get(), &count, sizeof count);
}

}  // namespace autodl
