// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "link/node_link.hpp"

#include <poll.h>
#include <sys/socket.h>

#include "base/log.hpp"
#include "wire/set_json.hpp"

namespace autodl {

namespace {
constexpr std::size_t kEventsMax = 1'000;
}

NodeLink::NodeLink(Config config, Events events)
    : config_(std::move(config)), events_(std::move(events)) {}

NodeLink::~NodeLink() {
  stop();
}

Status NodeLink::start() {
  ADL_TRY(fd, listen_unix(config_.path, SOCK_STREAM, config_.rights));
  listening_ = std::move(fd);
  thread_ = std::thread([this] { run(); });
  return {};
}

void NodeLink::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  waker_.wake();
  if (thread_.joinable()) thread_.join();
}

void NodeLink::send_observed(const ObservedSet& set) {
  auto text = encode_observed(set);
  {
    const std::lock_guard lock(mutex_);
    observed_ = std::move(text);
  }
  waker_.wake();
}

void NodeLink::send_event(const LinkEvent& event) {
  {
    const std::lock_guard lock(mutex_);
    if (events_out_.size() >= kEventsMax) events_out_.pop_front();
    events_out_.push_back(to_json(event));
  }
  waker_.wake();
}

void NodeLink::run() {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      if (pipe_ && greeted_ && pipe_->empty()) {
        for (const auto& event : events_out_) pipe_->put(LinkFrame::kEvent, event);
        events_out_.clear();
        if (observed_) pipe_->put(LinkFrame::kObserved, *observed_);
        observed_.reset();
      }
    }
    pollfd wanted[3] = {{listening_.get(), POLLIN, 0}, {waker_.fd(), POLLIN, 0}, {-1, POLLIN, 0}};
    if (pipe_) {
      wanted[2].fd = pipe_->fd();
      if (!pipe_->empty()) wanted[2].events = POLLIN | POLLOUT;
    }
    ::poll(wanted, 3, -1);
    if ((wanted[1].revents & POLLIN) != 0) waker_.drain();
    if ((wanted[0].revents & POLLIN) != 0) accept_one();
    if (!pipe_ || wanted[2].revents == 0 || wanted[2].fd != pipe_->fd()) continue;
    const auto served = serve_once(*pipe_);
    if (served.ok()) continue;
    if (served.error().code() != "link_closed")
      log_warn("link", "control: {}", served.error().message());
    pipe_.reset();
  }
}

void NodeLink::accept_one() {
  UniqueFd fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid()) return;
  if (!peer_is(fd.get(), config_.user)) {
    log_warn("link", "a connection of a user that is neither root nor ours was refused");
    return;
  }
  pipe_ = std::make_unique<LinkPipe>(std::move(fd));
  greeted_ = false;
  pipe_->put(LinkFrame::kHello, to_json(config_.mine));
}

Status NodeLink::serve_once(LinkPipe& pipe) {
  ADL_TRY(frames, pipe.read());
  for (const auto& frame : frames) ADL_TRY_STATUS(take(pipe, frame));
  return pipe.write();
}

Status NodeLink::take(LinkPipe& pipe, const Frame& frame) {
  const auto type = static_cast<LinkFrame>(frame.type);
  if (!greeted_) {
    if (type != LinkFrame::kHello)
      return Error(ErrorKind::kInvalid, "no_hello", "it did not say hello first");
    ADL_TRY(hello, parse_link_hello(frame.payload));
    if (hello.role != "control")
      return Error(ErrorKind::kInvalid, "bad_role", "the peer is no control");
    greeted_ = true;
    if (events_.connected) events_.connected();
    return {};
  }
  if (type == LinkFrame::kPing) {
    pipe.put(LinkFrame::kPong, frame.payload.substr(0, 64));
  } else if (type == LinkFrame::kDesired) {
    // A set that can't be read is refused as a whole, told, and the link goes on.
    auto taken = [&]() -> Status {
      ADL_TRY(set, decode_desired(frame.payload));
      return events_.desired(std::move(set));
    }();
    if (taken.ok()) {
      last_refusal_.clear();
      return {};
    }
    if (taken.error().message() != last_refusal_)
      log_error("link", "desired set refused: {}", taken.error().message());
    last_refusal_ = taken.error().message();
    pipe.put(LinkFrame::kRefused, refusal_to_json(taken.error()));
  }
  return {};
}

}  // namespace autodl
