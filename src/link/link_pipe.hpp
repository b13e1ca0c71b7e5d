// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// LinkPipe: frames over one non-blocking stream socket, for a poll loop. One thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "link/link_messages.hpp"
#include "wire/frames.hpp"

namespace autodl {

class LinkPipe {
 public:
  explicit LinkPipe(UniqueFd fd) : fd_(std::move(fd)), reader_(kLinkFramePayloadMax) {}

  int fd() const { return fd_.get(); }
  bool empty() const { return sent_ == out_.size(); }  // nothing waits to be written
  void put(LinkFrame type, std::string_view payload) {
    out_ += encode_frame(static_cast<std::uint8_t>(type), payload);
  }
  // What has come. kUnavailable link_closed at the peer's end; kInvalid for what is no frame.
  Result<std::vector<Frame>> read();
  Status write();  // as much as the socket takes

 private:
  UniqueFd fd_;
  FrameReader reader_;
  std::string out_;
  std::size_t sent_ = 0;
};

// Wakes a poll loop from other threads.
class Waker {
 public:
  Waker();
  int fd() const { return fd_.get(); }
  void wake();
  void drain();

 private:
  UniqueFd fd_;
};

}  // namespace autodl
