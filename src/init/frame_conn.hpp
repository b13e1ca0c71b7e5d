// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// FrameConn: frames over a non-blocking socket within the loop. Output is queued; who produces much
// asks full() and waits for on_drained. After on_gone (once) nothing is called any more.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"
#include "init/event_loop.hpp"
#include "wire/frames.hpp"
#include "wire/init_messages.hpp"

namespace autodl::init {

class FrameConn {
 public:
  struct Handlers {
    std::function<void(Frame)> on_frame;
    std::function<void()> on_gone;     // peer closed, broke the framing or queued output is lost
    std::function<void()> on_drained;  // the queue is empty; may be absent
  };

  FrameConn(EventLoop& loop, UniqueFd socket, Handlers handlers);
  ~FrameConn();
  FrameConn(const FrameConn&) = delete;
  FrameConn& operator=(const FrameConn&) = delete;

  void send(InitFrame type, std::string_view payload);
  bool full() const { return out_.size() - out_sent_ > kQueueBytes; }
  // While paused no frame comes; a peer that hangs up is noticed all the same.
  void pause(bool paused);
  // Sends what is queued, then waits for the peer to close (30 s at most), then on_gone.
  void finish();

 private:
  static constexpr std::size_t kQueueBytes = 256 << 10;
  static constexpr Millis kFinishTimeout{30'000};
  static constexpr std::size_t kQueueBytesMax = 8 << 20;  // a peer that does not read is dropped

  void on_events(std::uint32_t events);
  void read_some();
  void hand_out_frames();
  void flush();
  void arm();
  void gone();

  EventLoop& loop_;
  UniqueFd socket_;
  Handlers handlers_;
  FrameReader reader_;
  std::string out_;
  std::size_t out_sent_ = 0;
  bool paused_ = false;
  bool finishing_ = false;
  bool gone_ = false;
  EventLoop::TimerId finish_timer_ = 0;
};

}  // namespace autodl::init
