// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "net/address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>

namespace autodl {
namespace {

Error bad_address(std::string_view text) {
  return Error(ErrorKind::kInvalid, "bad_address", fmt::format("'{}' is no address", text),
               "write 127.0.0.1:8480, [::1]:8480 or unix:/path");
}

template <class T>
T& as(SocketAddress& address) {
  return *reinterpret_cast<T*>(&address.storage);
}
template <class T>
const T& as(const SocketAddress& address) {
  return *reinterpret_cast<const T*>(&address.storage);
}

Result<SocketAddress> parse_unix(std::string_view text, std::string_view path) {
  SocketAddress address;
  auto& un = as<sockaddr_un>(address);
  if (path.empty() || path.size() >= sizeof un.sun_path) return bad_address(text);
  un.sun_family = AF_UNIX;
  std::memcpy(un.sun_path, path.data(), path.size());
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return address;
}

}  // namespace

Result<SocketAddress> parse_address(std::string_view text) {
  constexpr std::string_view kUnix = "unix:";
  if (text.substr(0, kUnix.size()) == kUnix) return parse_unix(text, text.substr(kUnix.size()));
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad_address(text);
  std::string host(text.substr(0, colon));
  const std::string_view port_text = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, error] =
      std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
  if (error != std::errc{} || end != port_text.data() + port_text.size()) return bad_address(text);

  SocketAddress address;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    auto& in6 = as<sockaddr_in6>(address);
    host = host.substr(1, host.size() - 2);
    if (inet_pton(AF_INET6, host.c_str(), &in6.sin6_addr) != 1) return bad_address(text);
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(port);
    address.length = sizeof in6;
    return address;
  }
  auto& in4 = as<sockaddr_in>(address);
  if (inet_pton(AF_INET, host.c_str(), &in4.sin_addr) != 1) return bad_address(text);
  in4.sin_family = AF_INET;
  in4.sin_port = htons(port);
  address.length = sizeof in4;
  return address;
}

std::string to_string(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.family() == AF_INET) {
    inet_ntop(AF_INET, &as<sockaddr_in>(address).sin_addr, text, sizeof text);
    return fmt::format("{}:{}", text, port_of(address));
  }
  if (address.family() == AF_INET6) {
    inet_ntop(AF_INET6, &as<sockaddr_in6>(address).sin6_addr, text, sizeof text);
    return fmt::format("[{}]:{}", text, port_of(address));
  }
  if (address.length > offsetof(sockaddr_un, sun_path))
    return fmt::format("unix:{}", as<sockaddr_un>(address).sun_path);
  return "unix:";
}

std::uint16_t port_of(const SocketAddress& address) {
  if (address.family() == AF_INET) return ntohs(as<sockaddr_in>(address).sin_port);
  if (address.family() == AF_INET6) return ntohs(as<sockaddr_in6>(address).sin6_port);
  return 0;
}

bool is_loopback(const SocketAddress& address) {
  if (address.family() == AF_INET)
    return (ntohl(as<sockaddr_in>(address).sin_addr.s_addr) >> 24) == 127;
  if (address.family() == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&as<sockaddr_in6>(address).sin6_addr);
  return true;
}

Result<UniqueFd> listen_on(const SocketAddress& address, unsigned unix_mode) {
  const std::string name = to_string(address);
  UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errno_error("make a socket", errno);
  const int on = 1;
  const bool is_unix = address.family() == AF_UNIX;
  if (is_unix) {
    ::unlink(as<sockaddr_un>(address).sun_path);
  } else {
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address.family() == AF_INET6)
      ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  }
  if (::bind(fd.get(), address.raw(), address.length) != 0)
    return errno_error(fmt::format("listen on {}", name), errno, ErrorKind::kUnavailable);
  if (is_unix && ::chmod(as<sockaddr_un>(address).sun_path, unix_mode) != 0)
    return errno_error(fmt::format("set the mode of {}", name), errno);
  if (::listen(fd.get(), 1024) != 0)
    return errno_error(fmt::format("listen on {}", name), errno, ErrorKind::kUnavailable);
  return fd;
}

}  // namespace autodl
