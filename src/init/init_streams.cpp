// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The listener on 65022: headers, then streams. Whatever is wrong with a header is closed without
// an answer.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>

#include "init/init.hpp"
#include "init/init_incoming.hpp"

namespace autodl::init {
namespace {

constexpr Millis kHeaderTimeout{5'000};
constexpr std::size_t kIncomingMax = 64;
constexpr std::size_t kStreamsMax = 256;
constexpr std::size_t kSshMax = 256;

}  // namespace

Status Init::listen() {
  UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(paths_.port);
  if (!listener.valid() ||
      setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener.get(), 128) != 0)
    return errno_error("listen on port " + std::to_string(paths_.port), errno);
  listener_ = std::move(listener);
  loop_.watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { accept_some(); });
  return {};
}

void Init::accept_some() {
  UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid()) return;
  // A process inside that dials and says nothing pushes out only others that said nothing: the
  // oldest goes, so the node always gets in.
  if (incoming_.size() >= kIncomingMax) {
    auto oldest = incoming_.begin();
    for (auto at = incoming_.begin(); at != incoming_.end(); ++at)
      if (at->second->timer < oldest->second->timer) oldest = at;
    close_incoming(oldest->first);
  }
  const int number = fd.get();
  const int on = 1;
  setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(number, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  auto incoming = std::make_unique<Incoming>();
  incoming->fd = std::move(fd);
  incoming->timer = loop_.after(kHeaderTimeout, [this, number] { close_incoming(number); });
  incoming_[number] = std::move(incoming);
  loop_.watch(number, EPOLLIN, [this, number](std::uint32_t) { on_header_bytes(number); });
}

void Init::close_incoming(int fd) {
  const auto found = incoming_.find(fd);
  if (found == incoming_.end()) return;
  loop_.cancel(found->second->timer);
  loop_.forget(fd);
  incoming_.erase(found);
}

void Init::on_header_bytes(int fd) {
  Incoming& incoming = *incoming_.at(fd);
  const auto size = proxy_header_size(incoming.bytes);
  if (!size.ok()) return close_incoming(fd);
  // No byte more than the header: what follows is sshd's or the service's.
  char buffer[kProxyHeaderBytesMax];
  const ssize_t got = recv(fd, buffer, size.value() - incoming.bytes.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return close_incoming(fd);
  incoming.bytes.append(buffer, static_cast<std::size_t>(got));
  const auto whole = proxy_header_size(incoming.bytes);
  if (!whole.ok()) return close_incoming(fd);
  if (incoming.bytes.size() < whole.value() || incoming.bytes.size() <= kProxyFixedBytes) return;
  const auto header = parse_proxy_header(key_, incoming.bytes);
  if (!header.ok() || !nonces_.accept(header.value().nonce)) return close_incoming(fd);
  UniqueFd socket = std::move(incoming.fd);
  loop_.cancel(incoming.timer);
  loop_.forget(fd);
  incoming_.erase(fd);
  admit(std::move(socket), header.value());
}

void Init::refuse(UniqueFd socket, StreamKind kind, std::string code, std::string message) {
  if (kind != StreamKind::kExec && kind != StreamKind::kPty) return;
  const std::string frame =
      init_frame(InitFrame::kError, to_json(InitError{std::move(code), std::move(message)}));
  static_cast<void>(::send(socket.get(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  shutdown(socket.get(), SHUT_WR);
}

void Init::admit(UniqueFd socket, const ProxyHeader& header) {
  const StreamKind kind = header.target.kind;
  if (kind == StreamKind::kControl) return take_control(std::move(socket));
  if (!going_ || stopping_)
    return refuse(std::move(socket), kind, "not_ready",
                  stopping_ ? "the instance is stopping" : "the instance is not running yet");
  if (streams_.size() >= kStreamsMax || ssh_count_ >= kSshMax)
    return refuse(std::move(socket), kind, "too_many_streams",
                  "too many connections into this instance are open: close some");
  switch (kind) {
    case StreamKind::kExec:
    case StreamKind::kPty:
      return add_stream(make_process_stream(host_, std::move(socket), kind == StreamKind::kPty));
    case StreamKind::kTcp:
      return add_stream(make_tcp_stream(host_, std::move(socket), header.target.port));
    case StreamKind::kSsh: {
      ++ssh_count_;
      const auto served = ssh_.serve(std::move(socket), header, [this] { --ssh_count_; });
      if (!served.ok()) {
        --ssh_count_;
        this->send(InitFrame::kReport,
                   to_json(InitReport{"warning", "SSH login: " + served.error().message()}));
      }
      return;
    }
    case StreamKind::kControl: return;
  }
}

void Init::add_stream(std::unique_ptr<Stream> stream) {
  Stream* const key = stream.get();
  streams_[key] = std::move(stream);
}

}  // namespace autodl::init
