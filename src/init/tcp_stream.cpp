// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// tcp streams: copies between the client's socket and one to 127.0.0.1:PORT (or ::1), each way on
// its own, so that one side may finish sending before the other.
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "init/stream.hpp"

namespace autodl::init {
namespace {

constexpr std::size_t kBufferBytes = 64 << 10;

// One direction.
struct Flow {
  std::array<char, kBufferBytes> bytes;
  std::size_t begin = 0;
  std::size_t end = 0;
  bool source_ended = false;
  bool finished = false;  // the end has been passed on
};

class TcpStream final : public Stream {
 public:
  TcpStream(StreamHost& host, UniqueFd socket, std::uint16_t port)
      : host_(host), port_(port), client_(std::move(socket)) {
    dial(AF_INET);
  }
  ~TcpStream() override {
    if (client_.valid()) host_.loop.forget(client_.get());
    if (service_.valid()) host_.loop.forget(service_.get());
  }

 private:
  void dial(int family) {
    if (service_.valid()) host_.loop.forget(service_.get());
    service_ = UniqueFd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port_);
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port_);
    v6.sin6_addr = in6addr_loopback;
    const bool is_v4 = family == AF_INET;
    const auto* address =
        is_v4 ? reinterpret_cast<const sockaddr*>(&v4) : reinterpret_cast<const sockaddr*>(&v6);
    const socklen_t length = is_v4 ? sizeof v4 : sizeof v6;
    if (!service_.valid() ||
        (connect(service_.get(), address, length) != 0 && errno != EINPROGRESS))
      return failed(family);
    host_.loop.watch(service_.get(), EPOLLOUT, [this, family](std::uint32_t) {
      int error = 0;
      socklen_t size = sizeof error;
      getsockopt(service_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) return failed(family);
      for (const int fd : {client_.get(), service_.get()})
        host_.loop.watch(fd, EPOLLIN, [this](std::uint32_t events) { on_events(events); });
    });
  }

  // Services that listen on ::1 alone are reached too; then the client's connection is closed.
  void failed(int family) {
    if (family == AF_INET) return dial(AF_INET6);
    drop();
  }

  void drop() {
    if (dropped_) return;
    dropped_ = true;
    host_.drop(this);
  }

  void on_events(std::uint32_t events) {
    if (dropped_) return;
    const bool broken = !move(client_.get(), service_.get(), to_service_) ||
                        !move(service_.get(), client_.get(), to_client_);
    if (broken || (to_service_.finished && to_client_.finished) || ((events & EPOLLERR) != 0))
      return drop();
    host_.loop.change(client_.get(), wanted(to_service_, to_client_));
    host_.loop.change(service_.get(), wanted(to_client_, to_service_));
  }

  static std::uint32_t wanted(const Flow& from_here, const Flow& to_here) {
    std::uint32_t events = 0;
    if (!from_here.source_ended && from_here.end < kBufferBytes) events |= EPOLLIN;
    if (to_here.begin < to_here.end) events |= EPOLLOUT;
    return events;
  }

  // False where a side is broken.
  static bool move(int from, int to, Flow& flow) {
    if (!flow.source_ended && flow.end < kBufferBytes) {
      const ssize_t got =
          recv(from, flow.bytes.data() + flow.end, kBufferBytes - flow.end, MSG_DONTWAIT);
      if (got > 0) flow.end += static_cast<std::size_t>(got);
      if (got == 0) flow.source_ended = true;
      if (got < 0 && errno != EAGAIN && errno != EINTR) return false;
    }
    while (flow.begin < flow.end) {
      const ssize_t sent = send(to, flow.bytes.data() + flow.begin, flow.end - flow.begin,
                                MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && (errno == EAGAIN || errno == EINTR)) break;
      if (sent < 0) return false;
      flow.begin += static_cast<std::size_t>(sent);
    }
    if (flow.begin == flow.end) {
      flow.begin = flow.end = 0;
      if (flow.source_ended && !flow.finished) {
        flow.finished = true;
        shutdown(to, SHUT_WR);
      }
    }
    return true;
  }

  StreamHost& host_;
  std::uint16_t port_;
  UniqueFd client_;
  UniqueFd service_;
  Flow to_service_;
  Flow to_client_;
  bool dropped_ = false;
};

}  // namespace

std::unique_ptr<Stream> make_tcp_stream(StreamHost& host, UniqueFd socket, std::uint16_t port) {
  return std::make_unique<TcpStream>(host, std::move(socket), port);
}

}  // namespace autodl::init
