// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "net/conn.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>

#include "net/address.hpp"

namespace autodl {
namespace {

namespace asio = boost::asio;
using Socket = asio::generic::stream_protocol::socket;
using TimePoint = asio::steady_timer::time_point;

// How many reads or writes may succeed at once before other connections get their turn.
constexpr int kTurnsMax = 16;

// Tries the system call first and waits for the kernel only where it must: no composed operations,
// which cost compile time and a queue passage each.
class SocketConn final : public Conn {
 public:
  SocketConn(Executor executor, Socket socket, std::string peer)
      : state_(std::make_shared<State>(executor, std::move(socket))), peer_(std::move(peer)) {}
  ~SocketConn() override { SocketConn::close(); }

  Task<Result<std::size_t>> read_some(std::span<char> buffer) override {
    const auto state = state_;  // the object may be destroyed by close and release of its owner
    if (++state->turns >= kTurnsMax) {
      state->turns = 0;
      co_await asio::post(asio::use_awaitable);
    }
    while (true) {
      if (auto ended = state->ended()) co_return *ended;
      const auto got = ::recv(state->socket.native_handle(), buffer.data(), buffer.size(), 0);
      if (got >= 0) co_return static_cast<std::size_t>(got);
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) co_return lost("read", errno);
      state->turns = 0;
      boost::system::error_code ignored;  // the next recv says what happened
      co_await state->socket.async_wait(Socket::wait_read,
                                        asio::redirect_error(asio::use_awaitable, ignored));
    }
  }

  Task<Status> write_all(std::string_view first, std::string_view second) override {
    const auto state = state_;
    while (!first.empty() || !second.empty()) {
      if (auto ended = state->ended()) co_return *ended;
      const auto sent = send_some(*state, first, second);
      if (sent > 0) {
        const auto from_first = std::min(static_cast<std::size_t>(sent), first.size());
        first.remove_prefix(from_first);
        second.remove_prefix(static_cast<std::size_t>(sent) - from_first);
        continue;
      }
      if (sent == -EINTR) continue;
      if (sent != -EAGAIN && sent != -EWOULDBLOCK) co_return lost("write", static_cast<int>(-sent));
      boost::system::error_code ignored;
      co_await state->socket.async_wait(Socket::wait_write,
                                        asio::redirect_error(asio::use_awaitable, ignored));
    }
    co_return Status{};
  }

  void shutdown_write() override {
    if (!state_->closed) ::shutdown(state_->socket.native_handle(), SHUT_WR);
  }

  void close() override {
    if (state_->closed) return;
    state_->closed = true;
    boost::system::error_code ignored;
    state_->timer.cancel();
    state_->socket.close(ignored);
  }

  void expires_after(Millis time) override {
    state_->deadline = asio::steady_timer::clock_type::now() + time;
    state_->expired = false;
    State::arm(state_);
  }

  void expires_never() override {
    state_->deadline = TimePoint::max();
    state_->expired = false;
  }

  const std::string& peer() const override { return peer_; }
  Executor executor() override { return state_->socket.get_executor(); }

 private:
  // Shared with the timer's handler and with running reads and writes.
  struct State {
    State(const Executor& executor, Socket connected)
        : socket(std::move(connected)), timer(executor) {}

    std::optional<Error> ended() const {
      if (closed) return Error(ErrorKind::kUnavailable, "closed", "the connection is closed");
      if (expired) return Error(ErrorKind::kUnavailable, "timed_out", "the peer took too long");
      return std::nullopt;
    }

    // The timer runs at the earliest deadline seen; when it fires too early it is set again. So a
    // deadline that only moves on costs no timer operation.
    static void arm(const std::shared_ptr<State>& state) {
      if (state->closed || (state->armed && state->armed_for <= state->deadline)) return;
      state->armed = true;
      state->armed_for = state->deadline;
      state->timer.expires_at(state->deadline);
      state->timer.async_wait(
          [weak = std::weak_ptr(state)](const boost::system::error_code& error) {
            const auto self = weak.lock();
            if (error || !self || self->closed) return;
            self->armed = false;
            if (self->deadline == TimePoint::max()) return;
            if (self->deadline > asio::steady_timer::clock_type::now()) return arm(self);
            self->expired = true;
            boost::system::error_code ignored;
            self->socket.cancel(ignored);
          });
    }

    Socket socket;
    asio::steady_timer timer;
    TimePoint deadline = TimePoint::max();
    TimePoint armed_for;
    int turns = 0;
    bool armed = false;
    bool expired = false;
    bool closed = false;
  };

  static ssize_t send_some(const State& state, std::string_view first, std::string_view second) {
    std::array<iovec, 2> pieces{{{const_cast<char*>(first.data()), first.size()},
                                 {const_cast<char*>(second.data()), second.size()}}};
    msghdr message{};
    message.msg_iov = first.empty() ? &pieces[1] : pieces.data();
    message.msg_iovlen = first.empty() || second.empty() ? 1 : 2;
    const auto sent =
        ::sendmsg(const_cast<State&>(state).socket.native_handle(), &message, MSG_NOSIGNAL);
    return sent >= 0 ? sent : -errno;
  }

  static Error lost(std::string_view action, int error) {
    return Error(ErrorKind::kUnavailable, "reset", errno_error(action, error).message());
  }

  std::shared_ptr<State> state_;
  std::string peer_;
};

Result<std::unique_ptr<Conn>> make_conn(Executor executor, int family, UniqueFd fd,
                                        std::string peer) {
  Socket socket(executor);
  boost::system::error_code error;
  const int protocol = family == AF_UNIX ? 0 : IPPROTO_TCP;
  socket.assign(asio::generic::stream_protocol(family, protocol), fd.get(), error);
  if (error)
    return Error(ErrorKind::kInternal, "os_error", "take over a socket: " + error.message());
  fd.release();
  socket.native_non_blocking(true, error);
  if (family != AF_UNIX) {
    const int on = 1;
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(socket.native_handle(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  }
  return std::unique_ptr<Conn>(
      std::make_unique<SocketConn>(executor, std::move(socket), std::move(peer)));
}

}  // namespace

Result<std::unique_ptr<Conn>> adopt_conn(Executor executor, UniqueFd socket, std::string peer) {
  int type = 0, family = 0;
  socklen_t length = sizeof type;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM)
    return Error(ErrorKind::kInvalid, "no_stream_socket",
                 fmt::format("descriptor {} is no stream socket", socket.get()));
  length = sizeof family;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_DOMAIN, &family, &length);
  return make_conn(executor, family, std::move(socket), std::move(peer));
}

Task<Result<std::unique_ptr<Conn>>> connect_to(std::string address, Millis limit) {
  const auto executor = co_await asio::this_coro::executor;
  ADL_CO_TRY(target, parse_address(address));
  const int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  UniqueFd fd(::socket(target.family(), type, 0));
  if (!fd.valid()) co_return errno_error("make a socket", errno);
  const int at_once = ::connect(fd.get(), target.raw(), target.length);
  const int problem = at_once == 0 ? 0 : errno;
  if (problem != 0 && problem != EINPROGRESS)
    co_return errno_error("connect to " + address, problem, ErrorKind::kUnavailable);
  Socket socket(executor);
  boost::system::error_code error;
  socket.assign(asio::generic::stream_protocol(target.family(), 0), fd.get(), error);
  if (error) co_return Error(ErrorKind::kInternal, "os_error", error.message());
  fd.release();
  // Shared with the timer's handler, which may be queued when the wait is over.
  const auto waiting = std::make_shared<Socket>(std::move(socket));
  asio::steady_timer timer(executor, limit);
  timer.async_wait([waiting](const boost::system::error_code& cancelled) {
    boost::system::error_code ignored;
    if (!cancelled) waiting->cancel(ignored);
  });
  if (problem == EINPROGRESS)
    co_await waiting->async_wait(Socket::wait_write,
                                 asio::redirect_error(asio::use_awaitable, error));
  timer.cancel();
  if (error)
    co_return Error(ErrorKind::kUnavailable, "timed_out",
                    fmt::format("connect to {}: no answer within {} ms", address, limit.count()));
  int failure = 0;
  socklen_t length = sizeof failure;
  ::getsockopt(waiting->native_handle(), SOL_SOCKET, SO_ERROR, &failure, &length);
  if (failure != 0)
    co_return errno_error("connect to " + address, failure, ErrorKind::kUnavailable);
  UniqueFd connected(waiting->release());
  co_return make_conn(executor, target.family(), std::move(connected), address);
}

}  // namespace autodl
