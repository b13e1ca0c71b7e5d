// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "agent/socket_init_links.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "agent/init_dial.hpp"
#include "base/log.hpp"

namespace autodl {

namespace {
constexpr int kWriteLimitMs = 2'000;
constexpr int kReportsPerSecond = 20;
}  // namespace

SocketInitLinks::SocketInitLinks(InitEventSink sink, Random& random, std::uint16_t port)
    : sink_(std::move(sink)),
      random_(random),
      port_(port),
      waker_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { run(); }) {}

SocketInitLinks::~SocketInitLinks() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake();
  thread_.join();
}

void SocketInitLinks::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(waker_.get(), &one, sizeof one);
}

// ---- calls

Result<SocketInitLinks::LinkPtr> SocketInitLinks::dial(const InitTarget& target, Millis limit) {
  InitDial dial;
  dial.address = target.address;
  dial.port = port_;
  dial.key = target.key;
  dial.target.kind = StreamKind::kControl;
  ADL_TRY(fd, dial_init(dial, random_, limit));
  auto link = std::make_shared<Link>();
  link->fd = std::move(fd);
  link->instance = target.instance;
  link->run = target.run;
  ADL_TRY_STATUS(write(*link, InitFrame::kSetup, to_json(target.setup)));
  return link;
}

Result<InitReady> SocketInitLinks::connect(const InitTarget& target, Millis limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  const auto left = [&] {
    return std::max(std::chrono::duration_cast<Millis>(end - std::chrono::steady_clock::now()),
                    Millis{0});
  };
  LinkPtr link;
  {
    const std::lock_guard lock(mutex_);
    const auto found = links_.find(target.instance);
    if (found != links_.end() && found->second->run == target.run) link = found->second;
    if (link && link->is_ready) return link->ready;
  }
  if (!link) {
    ADL_TRY(dialled, dial(target, left()));
    link = std::move(dialled);
  }
  const auto ready = await_ready(*link, left());
  {
    const std::lock_guard lock(mutex_);
    // One that only was not ready in time is kept: the next call waits on.
    if (ready.ok() || ready.error().code() == "not_ready")
      links_[target.instance] = link;
    else
      links_.erase(target.instance);
  }
  if (!ready.ok()) return ready.error();
  wake();
  return link->ready;
}

Status SocketInitLinks::await_ready(Link& link, Millis limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  std::array<char, 16384> chunk;
  for (;;) {
    for (;;) {
      ADL_TRY(frame, link.reader.next());
      if (!frame) break;
      if (frame->type == static_cast<std::uint8_t>(InitFrame::kError)) {
        ADL_TRY(error, parse_init_error(frame->payload));
        return Error(ErrorKind::kUnavailable, "init_refused",
                     fmt::format("init: {} ({})", error.message, error.code));
      }
      if (frame->type != static_cast<std::uint8_t>(InitFrame::kReady)) continue;
      ADL_TRY(ready, parse_init_ready(frame->payload));
      link.ready = std::move(ready);
      const std::lock_guard lock(mutex_);
      link.is_ready = true;
      return {};
    }
    const auto left =
        std::chrono::duration_cast<Millis>(end - std::chrono::steady_clock::now()).count();
    pollfd wanted{link.fd.get(), POLLIN, 0};
    if (left <= 0 || ::poll(&wanted, 1, static_cast<int>(left)) == 0)
      return Error(ErrorKind::kUnavailable, "not_ready", "init is not ready yet");
    const auto got = ::recv(link.fd.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return Error(ErrorKind::kUnavailable, "init_gone", "init closed the stream");
    link.reader.put({chunk.data(), static_cast<std::size_t>(got)});
  }
}

Status SocketInitLinks::write(Link& link, InitFrame type, std::string_view payload) {
  const auto bytes = init_frame(type, payload);
  const std::lock_guard lock(link.write_mutex);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto sent = ::send(link.fd.get(), bytes.data() + done, bytes.size() - done,
                             MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      done += static_cast<std::size_t>(sent);
      continue;
    }
    if (sent < 0 && errno == EINTR) continue;
    pollfd wanted{link.fd.get(), POLLOUT, 0};
    if (sent < 0 && errno == EAGAIN && ::poll(&wanted, 1, kWriteLimitMs) > 0) continue;
    ::shutdown(link.fd.get(), SHUT_RDWR);  // half a frame is out: the reader drops the link
    return Error(ErrorKind::kUnavailable, "init_gone", "init does not take what it is told");
  }
  return {};
}

Status SocketInitLinks::send(const InstanceId& instance, InitFrame type, std::string_view payload) {
  LinkPtr link;
  {
    const std::lock_guard lock(mutex_);
    const auto found = links_.find(instance);
    if (found != links_.end() && found->second->is_ready) link = found->second;
  }
  if (!link) return Error(ErrorKind::kUnavailable, "init_gone", "no control stream to init");
  return write(*link, type, payload);
}

Status SocketInitLinks::go(const InstanceId& instance, const RunId& run) {
  return send(instance, InitFrame::kGo, run_to_json(run));
}

Status SocketInitLinks::stop(const InstanceId& instance, const InitStop& wanted) {
  return send(instance, InitFrame::kStop, to_json(wanted));
}

Status SocketInitLinks::keys(const InstanceId& instance, const std::vector<AccessKey>& wanted) {
  return send(instance, InitFrame::kKeys, keys_to_json(wanted));
}

Status SocketInitLinks::samples(const InstanceId& instance, const std::string& json) {
  return send(instance, InitFrame::kSamples, json);
}

void SocketInitLinks::close(const InstanceId& instance) {
  const std::lock_guard lock(mutex_);
  links_.erase(instance);
  wake();
}

// ---- the reading thread

void SocketInitLinks::run() {
  auto refill_at = std::chrono::steady_clock::now();
  for (;;) {
    std::vector<LinkPtr> watched;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      const bool refill = std::chrono::steady_clock::now() >= refill_at;
      if (refill) refill_at = std::chrono::steady_clock::now() + std::chrono::seconds{1};
      for (const auto& [id, link] : links_) {
        if (refill) link->reports_left = kReportsPerSecond;
        if (link->is_ready) watched.push_back(link);
      }
    }
    std::vector<pollfd> wanted{{waker_.get(), POLLIN, 0}};
    for (const auto& link : watched) wanted.push_back({link->fd.get(), POLLIN, 0});
    ::poll(wanted.data(), wanted.size(), 1'000);
    if ((wanted[0].revents & POLLIN) != 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const auto got = ::read(waker_.get(), &count, sizeof count);
    }
    for (std::size_t i = 0; i < watched.size(); ++i)
      if (wanted[i + 1].revents != 0 && !read_from(watched[i])) drop(watched[i]);
  }
}

bool SocketInitLinks::read_from(const LinkPtr& link) {
  std::array<char, 16384> chunk;
  const auto got = ::recv(link->fd.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got <= 0) return false;
  link->reader.put({chunk.data(), static_cast<std::size_t>(got)});
  for (;;) {
    auto frame = link->reader.next();
    if (!frame.ok()) return false;
    if (!frame->has_value()) return true;
    if (!take(*link, **frame)) return false;
  }
}

// False: what came is no message of init's.
bool SocketInitLinks::take(Link& link, const Frame& frame) {
  InitEvent event;
  event.instance = link.instance;
  event.run = link.run;
  switch (static_cast<InitFrame>(frame.type)) {
    case InitFrame::kEnded:
      if (!parse_exit_record(frame.payload).ok()) return false;
      event.kind = InitEvent::Kind::kEnded;
      break;
    case InitFrame::kShutdown:
      if (!parse_run(frame.payload).ok()) return false;
      event.kind = InitEvent::Kind::kShutdown;
      break;
    case InitFrame::kReport: {
      auto report = parse_init_report(frame.payload);
      if (!report.ok()) return false;
      if (link.reports_left-- <= 0) return true;
      event.kind = InitEvent::Kind::kReport;
      event.report = std::move(report).value();
      break;
    }
    case InitFrame::kPing: return write(link, InitFrame::kPong, frame.payload.substr(0, 64)).ok();
    case InitFrame::kPong:
    case InitFrame::kReady:
    case InitFrame::kError: return true;
    default: return false;
  }
  sink_(std::move(event));
  return true;
}

void SocketInitLinks::drop(const LinkPtr& link) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = links_.find(link->instance);
    if (found == links_.end() || found->second != link) return;  // closed by us, or replaced
    links_.erase(found);
  }
  InitEvent lost;
  lost.kind = InitEvent::Kind::kLost;
  lost.instance = link->instance;
  lost.run = link->run;
  sink_(std::move(lost));
}

}  // namespace autodl
