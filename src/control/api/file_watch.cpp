// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "control/api/file_watch.hpp"

#include <fmt/format.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

namespace autodl {

namespace asio = boost::asio;
using Descriptor = asio::posix::stream_descriptor;

namespace {
constexpr Millis kPollPause{200};
}

struct FileWatch::State {
  explicit State(const Executor& executor) : descriptor(executor), timer(executor) {}
  Descriptor descriptor;
  asio::steady_timer timer;
};

FileWatch::FileWatch(Executor executor, int fd) : state_(std::make_shared<State>(executor)) {
  const int watcher = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (watcher < 0) return;
  const auto path = fmt::format("/proc/self/fd/{}", fd);
  if (::inotify_add_watch(watcher, path.c_str(), IN_MODIFY) < 0) {
    ::close(watcher);
    return;
  }
  state_->descriptor.assign(watcher);
}

FileWatch::~FileWatch() = default;

bool FileWatch::is_watching() const {
  return state_->descriptor.is_open();
}

Task<void> FileWatch::wait(Millis limit) {
  boost::system::error_code ignored;
  if (!is_watching()) {
    state_->timer.expires_after(std::min(limit, kPollPause));
    co_await state_->timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    co_return;
  }
  state_->timer.expires_after(limit);
  state_->timer.async_wait([weak = std::weak_ptr(state_)](const auto& error) {
    const auto state = weak.lock();
    boost::system::error_code nothing;
    if (!error && state) state->descriptor.cancel(nothing);
  });
  co_await state_->descriptor.async_wait(Descriptor::wait_read,
                                         asio::redirect_error(asio::use_awaitable, ignored));
  state_->timer.cancel();
  char events[4096];
  while (::read(state_->descriptor.native_handle(), events, sizeof events) > 0) {
  }
}

}  // namespace autodl
