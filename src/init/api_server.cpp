// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "init/api_server.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace autodl::init {
namespace {

constexpr std::size_t kClientsMax = 32;
constexpr std::size_t kHeadBytesMax = 8 << 10;
constexpr Millis kClientTimeout{5'000};

std::string_view reason(int status) {
  switch (status) {
    case 200: return "OK";
    case 202: return "Accepted";
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    default: return "Service Unavailable";
  }
}

}  // namespace

struct ApiServer::Client {
  UniqueFd fd;
  std::string bytes;
  EventLoop::TimerId timer = 0;
};

Result<RequestHead> parse_request_head(std::string_view bytes) {
  const Error bad(ErrorKind::kInvalid, "bad_request", "not an HTTP/1.1 request");
  const auto head_end = bytes.find("\r\n\r\n");
  if (head_end == std::string_view::npos) {
    if (bytes.size() > kHeadBytesMax) return bad;
    return RequestHead{};
  }
  const std::string_view line = bytes.substr(0, bytes.find("\r\n"));
  const auto first = line.find(' ');
  const auto second = line.find(' ', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos ||
      !line.substr(second + 1).starts_with("HTTP/1."))
    return bad;
  RequestHead head{std::string(line.substr(0, first)),
                   std::string(line.substr(first + 1, second - first - 1))};
  if (head.method.empty() || !head.path.starts_with('/')) return bad;
  return head;
}

ApiServer::ApiServer(EventLoop& loop, ApiHandler handler)
    : loop_(loop), handler_(std::move(handler)) {}

ApiServer::~ApiServer() {
  while (!clients_.empty()) close(clients_.begin()->first);
  if (listener_.valid()) loop_.forget(listener_.get());
}

Status ApiServer::listen(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ADL_ASSERT(path.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  unlink(path.c_str());
  UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid() ||
      bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      chmod(path.c_str(), 0666) != 0 || ::listen(listener.get(), 16) != 0)
    return errno_error("listen on '" + path + "'", errno);
  listener_ = std::move(listener);
  loop_.watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { accept_one(); });
  return {};
}

void ApiServer::accept_one() {
  UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid() || clients_.size() >= kClientsMax) return;
  const int number = fd.get();
  auto client = std::make_unique<Client>();
  client->fd = std::move(fd);
  client->timer = loop_.after(kClientTimeout, [this, number] { close(number); });
  clients_[number] = std::move(client);
  loop_.watch(number, EPOLLIN, [this, number](std::uint32_t) { on_readable(number); });
}

void ApiServer::close(int fd) {
  const auto found = clients_.find(fd);
  if (found == clients_.end()) return;
  loop_.cancel(found->second->timer);
  loop_.forget(fd);
  clients_.erase(found);
}

void ApiServer::on_readable(int fd) {
  Client& client = *clients_.at(fd);
  char buffer[4096];
  const ssize_t got = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return close(fd);
  client.bytes.append(buffer, static_cast<std::size_t>(got));
  const auto head = parse_request_head(client.bytes);
  if (!head.ok()) {
    answer(client, {400, R"({"code":"bad_request","detail":"not an HTTP/1.1 request"})"});
    return close(fd);
  }
  if (head.value().method.empty()) return;
  ucred peer{};
  socklen_t size = sizeof peer;
  const bool root = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == 0;
  answer(client, handler_(head.value().method, head.value().path, root));
  close(fd);
}

void ApiServer::answer(Client& client, const HttpReply& reply) {
  const std::string text = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n"
      "Connection: close\r\n\r\n{}",
      reply.status, reason(reply.status), reply.body.size(), reply.body);
  // At most 64 KiB: it fits into the socket's buffer, and who doesn't read loses the rest.
  static_cast<void>(send(client.fd.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  shutdown(client.fd.get(), SHUT_WR);
}

}  // namespace autodl::init
