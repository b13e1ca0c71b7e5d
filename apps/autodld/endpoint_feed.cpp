// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "endpoint_feed.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "net/address.hpp"

namespace autodl {

namespace {
constexpr std::size_t kReadersMax = 16;
constexpr std::size_t kPendingBytesMax = 32 << 20;
}  // namespace

Result<std::unique_ptr<EndpointFeed>> EndpointFeed::open(const std::string& path) {
  ADL_TRY(address, parse_address("unix:" + path));
  ADL_TRY(listener, listen_on(address, 0600));
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return errno_error("make the endpoint feed", errno);
  std::unique_ptr<EndpointFeed> feed(new EndpointFeed(std::move(listener), std::move(wake)));
  feed->thread_ = std::thread([raw = feed.get()] { raw->run(); });
  return feed;
}

EndpointFeed::EndpointFeed(UniqueFd listener, UniqueFd wake)
    : listener_(std::move(listener)), wake_(std::move(wake)) {}

EndpointFeed::~EndpointFeed() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

void EndpointFeed::publish(std::string line) {
  {
    const std::lock_guard lock(mutex_);
    if (line == latest_) return;
    latest_ = std::move(line);
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

void EndpointFeed::accept_readers() {
  for (;;) {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) return;
    if (readers_.size() < kReadersMax) readers_.push_back({std::move(fd), sent_});
  }
}

void EndpointFeed::take_latest() {
  const std::lock_guard lock(mutex_);
  if (latest_ == sent_) return;
  sent_ = latest_;
  for (auto& reader : readers_) reader.pending += sent_;
}

bool EndpointFeed::drain(Reader& reader) {
  while (!reader.pending.empty()) {
    const auto sent = ::send(reader.fd.get(), reader.pending.data(), reader.pending.size(),
                             MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0)
      return (errno == EAGAIN || errno == EINTR) && reader.pending.size() < kPendingBytesMax;
    reader.pending.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

void EndpointFeed::run() {
  for (;;) {
    std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const auto& reader : readers_)
      fds.push_back({reader.fd.get(),
                     static_cast<short>(reader.pending.empty() ? POLLIN : POLLIN | POLLOUT), 0});
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(wake_.get(), &count, sizeof count);
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    // A gateway sends nothing: what is readable is its end.
    std::size_t at = 2;
    std::erase_if(readers_, [&](const Reader&) {
      return (fds[at++].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
    });
    take_latest();
    accept_readers();
    std::erase_if(readers_, [](Reader& reader) { return !drain(reader); });
  }
}

}  // namespace autodl
