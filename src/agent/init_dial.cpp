// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "agent/init_dial.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

namespace autodl {

namespace {

using std::chrono::steady_clock;

int left_ms(steady_clock::time_point end) {
  const auto left = std::chrono::duration_cast<Millis>(end - steady_clock::now()).count();
  return static_cast<int>(std::max<Millis::rep>(left, 0));
}

// 0 or errno.
int connect_once(int fd, const sockaddr_in& address, steady_clock::time_point end) {
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd wanted{fd, POLLOUT, 0};
  // A packet to an instance whose network just appeared may be lost: a new try beats TCP's second.
  if (::poll(&wanted, 1, std::min(left_ms(end), 200)) <= 0) return ETIMEDOUT;
  int problem = 0;
  socklen_t length = sizeof problem;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &length);
  return problem;
}

}  // namespace

Result<UniqueFd> dial_init(const InitDial& dial, Random& random, Millis limit) {
  ProxyHeader header{dial.target, dial.client, dial.endpoint, make_nonce(random)};
  ADL_TRY(bytes, build_proxy_header(dial.key, header));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(dial.port);
  if (::inet_pton(AF_INET, dial.address.c_str(), &address.sin_addr) != 1)
    return Error(ErrorKind::kInternal, "bad_address",
                 fmt::format("instance address '{}' is no IPv4 address", dial.address));
  const auto end = steady_clock::now() + limit;
  for (;;) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd.valid()) return errno_error("make a socket", errno);
    const int problem = connect_once(fd.get(), address, end);
    if (problem == 0) {
      const int on = 1;
      ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      // The send buffer of a fresh connection takes a header of at most 256 bytes whole.
      const auto sent = ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent == static_cast<ssize_t>(bytes.size())) return fd;
    }
    if (left_ms(end) == 0)
      return Error(ErrorKind::kUnavailable, "not_ready",
                   fmt::format("the instance at {} does not answer: {}", dial.address,
                               std::strerror(problem == 0 ? EPIPE : problem)));
    // No event tells when a port of another network namespace begins to listen.
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
}

}  // namespace autodl
