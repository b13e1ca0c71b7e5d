// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "link/control_link.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/log.hpp"
#include "link/unix_socket.hpp"
#include "wire/set_json.hpp"

namespace autodl {

namespace {
constexpr Millis kSilence{10'000};  // the node sends every 2 s
constexpr Millis kRetryFirst{200};
constexpr Millis kRetryMax{2'000};
}  // namespace

ControlLink::ControlLink(std::string path, LinkHello mine, Events events)
    : path_(std::move(path)), mine_(std::move(mine)), events_(std::move(events)) {}

ControlLink::~ControlLink() {
  stop();
}

void ControlLink::start() {
  thread_ = std::thread([this] { run(); });
}

void ControlLink::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  waker_.wake();
  if (thread_.joinable()) thread_.join();
}

bool ControlLink::stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

void ControlLink::send_desired(const DesiredSet& set) {
  auto text = encode_desired(set);
  {
    const std::lock_guard lock(mutex_);
    desired_ = std::move(text);
  }
  waker_.wake();
}

void ControlLink::run() {
  auto retry = kRetryFirst;
  std::string last_problem;
  while (!stopping()) {
    bool up = false;
    auto ended = [&]() -> Status {
      ADL_TRY(fd, connect_unix(path_, SOCK_STREAM));
      LinkPipe pipe(std::move(fd));
      return serve(pipe, up);
    }();
    if (stopping()) return;
    if (!ended.ok()) {
      if (up && events_.down) events_.down(ended.error());
      if (ended.error().message() != last_problem)
        log_warn("link", "node at {}: {}", path_, ended.error().message());
      last_problem = ended.error().message();
    }
    retry = up ? kRetryFirst : std::min(retry * 2, kRetryMax);
    pollfd wanted{waker_.fd(), POLLIN, 0};
    const auto end = std::chrono::steady_clock::now() + retry;
    while (!stopping()) {
      const auto left = std::chrono::duration_cast<Millis>(end - std::chrono::steady_clock::now());
      if (left.count() <= 0 || ::poll(&wanted, 1, static_cast<int>(left.count())) == 0) break;
      waker_.drain();
    }
  }
}

Status ControlLink::serve(LinkPipe& pipe, bool& up) {
  pipe.put(LinkFrame::kHello, to_json(mine_));
  auto heard = std::chrono::steady_clock::now();
  while (!stopping()) {
    if (up && pipe.empty()) {
      const std::lock_guard lock(mutex_);
      if (desired_) {
        pipe.put(LinkFrame::kDesired, *desired_);
        desired_.reset();
      }
    }
    ADL_TRY_STATUS(pipe.write());
    const short events = pipe.empty() ? POLLIN : POLLIN | POLLOUT;
    pollfd wanted[2] = {{pipe.fd(), events, 0}, {waker_.fd(), POLLIN, 0}};
    ::poll(wanted, 2, 1'000);
    if ((wanted[1].revents & POLLIN) != 0) waker_.drain();
    if ((wanted[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
      ADL_TRY(frames, pipe.read());
      for (const auto& frame : frames) {
        ADL_TRY_STATUS(take(frame, up));
        if (frame.type == static_cast<std::uint8_t>(LinkFrame::kPing))
          pipe.put(LinkFrame::kPong, frame.payload);
      }
      if (!frames.empty()) heard = std::chrono::steady_clock::now();
    }
    if (std::chrono::steady_clock::now() - heard > kSilence)
      return Error(ErrorKind::kUnavailable, "node_silent", "the node has been silent for 10 s");
  }
  return {};
}

Status ControlLink::take(const Frame& frame, bool& up) {
  if (!up) {
    if (frame.type != static_cast<std::uint8_t>(LinkFrame::kHello))
      return Error(ErrorKind::kInvalid, "no_hello", "the node did not say hello first");
    ADL_TRY(hello, parse_link_hello(frame.payload));
    up = true;
    if (events_.up) events_.up(hello);
    return {};
  }
  switch (static_cast<LinkFrame>(frame.type)) {
    case LinkFrame::kObserved: {
      ADL_TRY(set, decode_observed(frame.payload));
      if (events_.observed) events_.observed(std::move(set));
      return {};
    }
    case LinkFrame::kEvent: {
      ADL_TRY(event, parse_link_event(frame.payload));
      if (events_.event) events_.event(event);
      return {};
    }
    case LinkFrame::kRefused:
      if (events_.refused) events_.refused(parse_refusal(frame.payload));
      return {};
    default: return {};  // of a neighbouring version
  }
}

}  // namespace autodl
