// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "net/listener.hpp"

#include <sys/socket.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>

#include "base/log.hpp"
#include "net/address.hpp"

namespace autodl {
namespace {

namespace asio = boost::asio;
using Descriptor = asio::posix::stream_descriptor;

class SocketListener final : public Listener {
 public:
  SocketListener(Executor executor, UniqueFd fd, std::uint16_t port)
      : state_(std::make_shared<State>(executor)), port_(port) {
    state_->descriptor.assign(fd.release());
  }
  ~SocketListener() override { SocketListener::close(); }

  Task<Result<std::unique_ptr<Conn>>> accept() override {
    const auto state = state_;
    while (!state->closed) {
      SocketAddress peer;
      peer.length = sizeof peer.storage;
      UniqueFd fd(::accept4(state->descriptor.native_handle(), peer.raw(), &peer.length,
                            SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (fd.valid())
        co_return adopt_conn(state->descriptor.get_executor(), std::move(fd), to_string(peer));
      const int problem = errno;
      boost::system::error_code ignored;
      if (problem == EAGAIN || problem == EWOULDBLOCK) {
        co_await state->descriptor.async_wait(Descriptor::wait_read,
                                              asio::redirect_error(asio::use_awaitable, ignored));
      } else if (problem != EINTR && problem != ECONNABORTED) {
        log_warn("net", "{}; trying again", errno_error("accept a connection", problem).message());
        state->pause.expires_after(std::chrono::milliseconds(100));
        co_await state->pause.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
      }
    }
    co_return Error(ErrorKind::kUnavailable, "closed", "the listener is closed");
  }

  void close() override {
    if (state_->closed) return;
    state_->closed = true;
    boost::system::error_code ignored;
    state_->descriptor.close(ignored);
    state_->pause.cancel();
  }

  std::uint16_t port() const override { return port_; }

 private:
  // Shared with a running accept().
  struct State {
    explicit State(const Executor& executor) : descriptor(executor), pause(executor) {}
    Descriptor descriptor;
    asio::steady_timer pause;
    bool closed = false;
  };
  std::shared_ptr<State> state_;
  std::uint16_t port_;
};

}  // namespace

Result<std::unique_ptr<Listener>> make_listener(Executor executor, const std::string& address) {
  ADL_TRY(parsed, parse_address(address));
  ADL_TRY(fd, listen_on(parsed));
  return adopt_listener(executor, std::move(fd));
}

Result<std::unique_ptr<Listener>> adopt_listener(Executor executor, UniqueFd listening) {
  SocketAddress bound;
  bound.length = sizeof bound.storage;
  if (::getsockname(listening.get(), bound.raw(), &bound.length) != 0)
    return errno_error("ask a listener's address", errno);
  return std::unique_ptr<Listener>(
      std::make_unique<SocketListener>(executor, std::move(listening), port_of(bound)));
}

}  // namespace autodl
