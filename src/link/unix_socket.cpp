// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "link/unix_socket.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace autodl {

namespace {

Result<sockaddr_un> make_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return Error(ErrorKind::kInvalid, "bad_socket_path",
                 fmt::format("socket path '{}' is empty or over {} bytes", path,
                             sizeof address.sun_path - 1),
                 "set a shorter run_dir");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

}  // namespace

Result<UniqueFd> listen_unix(const std::string& path, int type, SocketRights rights) {
  ADL_TRY(address, make_address(path));
  UniqueFd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return errno_error("make a unix socket", errno);
  ::unlink(path.c_str());
  // Nobody but us may connect between bind and chmod.
  const auto old_mask = ::umask(0177);
  const int bound = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int bind_errno = errno;
  ::umask(old_mask);
  if (bound != 0) return errno_error(fmt::format("bind '{}'", path), bind_errno);
  if (rights.group && ::chown(path.c_str(), static_cast<uid_t>(-1), *rights.group) != 0)
    return errno_error(fmt::format("give '{}' to group {}", path, *rights.group), errno);
  if (::chmod(path.c_str(), rights.mode) != 0)
    return errno_error(fmt::format("set the mode of '{}'", path), errno);
  if (::listen(fd.get(), 128) != 0) return errno_error(fmt::format("listen on '{}'", path), errno);
  return fd;
}

Result<UniqueFd> connect_unix(const std::string& path, int type) {
  ADL_TRY(address, make_address(path));
  UniqueFd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return errno_error("make a unix socket", errno);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return errno_error(fmt::format("connect to '{}'", path), errno, ErrorKind::kUnavailable);
  return fd;
}

bool peer_is(int fd, std::optional<uid_t> user) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return false;
  return credentials.uid == 0 || (user && credentials.uid == *user);
}

Status send_message(int socket, std::string_view bytes, int fd) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  if (::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
    return errno_error("send a message", errno, ErrorKind::kUnavailable);
  return {};
}

Result<Message> receive_message(int socket, std::size_t bytes_max, Millis limit) {
  pollfd wanted{socket, POLLIN, 0};
  const auto end = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const auto left = std::chrono::duration_cast<Millis>(end - std::chrono::steady_clock::now());
    const int ready = ::poll(&wanted, 1, static_cast<int>(std::max<Millis::rep>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return errno_error("wait for a message", errno);
    if (ready == 0)
      return Error(ErrorKind::kUnavailable, "timed_out",
                   fmt::format("no answer within {} ms", limit.count()));
    break;
  }
  Message out;
  out.bytes.resize(bytes_max);
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 4)];
  iovec part{out.bytes.data(), out.bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const auto got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return errno_error("receive a message", errno, ErrorKind::kUnavailable);
  for (auto* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const auto count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      out.fd.reset(fd);  // one is expected; more are closed
    }
  }
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
    return Error(ErrorKind::kInvalid, "message_too_big",
                 fmt::format("a message is over {} bytes", bytes_max));
  out.bytes.resize(static_cast<std::size_t>(got));
  return out;
}

}  // namespace autodl
