// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "init/frame_conn.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace autodl::init {

FrameConn::FrameConn(EventLoop& loop, UniqueFd socket, Handlers handlers)
    : loop_(loop), socket_(std::move(socket)), handlers_(std::move(handlers)) {
  loop_.watch(socket_.get(), EPOLLIN | EPOLLRDHUP,
              [this](std::uint32_t events) { on_events(events); });
}

FrameConn::~FrameConn() {
  loop_.cancel(finish_timer_);
  if (socket_.valid()) loop_.forget(socket_.get());
}

void FrameConn::gone() {
  if (gone_) return;
  gone_ = true;
  loop_.forget(socket_.get());
  socket_.reset();
  handlers_.on_gone();
}

void FrameConn::arm() {
  if (gone_) return;
  std::uint32_t events = EPOLLRDHUP;
  if (!paused_ && !finishing_) events |= EPOLLIN;
  if (out_sent_ < out_.size()) events |= EPOLLOUT;
  loop_.change(socket_.get(), events);
}

void FrameConn::on_events(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) flush();
  if (gone_) return;
  if ((events & EPOLLIN) != 0 && !paused_ && !finishing_) read_some();
  if (gone_) return;
  const bool hung_up = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
  // What was sent before the hang-up is read first; while nobody reads, a hang-up counts at once.
  if (hung_up && (paused_ || finishing_ || (events & EPOLLIN) == 0)) gone();
}

void FrameConn::read_some() {
  char buffer[64 << 10];
  const ssize_t got = recv(socket_.get(), buffer, sizeof buffer, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return gone();
  reader_.put({buffer, static_cast<std::size_t>(got)});
  hand_out_frames();
}

void FrameConn::hand_out_frames() {
  while (!gone_ && !paused_ && !finishing_) {
    auto next = reader_.next();
    if (!next.ok()) return gone();
    if (!next.value()) return;
    handlers_.on_frame(std::move(*next.value()));
  }
}

void FrameConn::pause(bool paused) {
  if (gone_ || paused_ == paused) return;
  paused_ = paused;
  arm();
  if (!paused_) hand_out_frames();  // frames may be waiting in the reader
}

void FrameConn::send(InitFrame type, std::string_view payload) {
  if (gone_ || finishing_) return;
  out_ += init_frame(type, payload);
  if (out_.size() - out_sent_ > kQueueBytesMax) {
    // Not from within the caller's hands: it may be destroyed by on_gone.
    shutdown(socket_.get(), SHUT_RDWR);
    return;
  }
  flush();
}

void FrameConn::flush() {
  while (out_sent_ < out_.size()) {
    const ssize_t sent = ::send(socket_.get(), out_.data() + out_sent_, out_.size() - out_sent_,
                                MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) break;  // full, or broken: then epoll says so
    out_sent_ += static_cast<std::size_t>(sent);
  }
  if (out_sent_ < out_.size()) {
    if (out_sent_ > kQueueBytes) {
      out_.erase(0, out_sent_);
      out_sent_ = 0;
    }
    return arm();
  }
  const bool had_output = out_sent_ > 0;
  out_.clear();
  out_sent_ = 0;
  arm();
  if (finishing_) {
    shutdown(socket_.get(), SHUT_WR);
    return;  // the peer's close ends it, so that the last frame isn't lost to a reset
  }
  if (had_output && handlers_.on_drained) handlers_.on_drained();
}

void FrameConn::finish() {
  if (gone_ || finishing_) return;
  finishing_ = true;
  finish_timer_ = loop_.after(kFinishTimeout, [this] { gone(); });
  flush();
}

}  // namespace autodl::init
