// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "gateway/gateway.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/log.hpp"

namespace autodl {

namespace json = boost::json;

namespace {

constexpr std::size_t kReplyBytesMax = 64 << 10;
constexpr std::size_t kLingeringMax = 256;

UniqueFd connect_unix(const std::string& path, int type) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return UniqueFd{};
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return UniqueFd{};
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return UniqueFd{};
  return fd;
}

std::string print_address(const sockaddr_in& address) {
  char text[INET_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
  return text;
}

void set_nodelay(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

}  // namespace

Gateway::Gateway(GatewayConfig config, const Clock& clock)
    : config_(std::move(config)),
      clock_(clock),
      limiter_(config_.rate, clock),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      spare_(::eventfd(0, EFD_CLOEXEC)) {}

Gateway::~Gateway() = default;

void Gateway::stop() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

Status Gateway::watch(int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return errno_error("watch a descriptor", errno);
  return {};
}

Status Gateway::run() {
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  timer_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!epoll_.valid() || !timer_.valid() || !wake_.valid())
    return errno_error("make the gateway's loop", errno);
  itimerspec every{};
  every.it_interval.tv_nsec = every.it_value.tv_nsec = 200'000'000;
  ::timerfd_settime(timer_.get(), 0, &every, nullptr);
  ADL_TRY_STATUS(watch(wake_.get(), EPOLLIN));
  ADL_TRY_STATUS(watch(timer_.get(), EPOLLIN));
  connect_control();
  while (!stopping_) {
    epoll_event events[64];
    const int count = ::epoll_wait(epoll_.get(), events, 64, unfinished_.empty() ? -1 : 0);
    if (count < 0 && errno != EINTR) return errno_error("wait for events", errno);
    for (int i = 0; i < count; ++i) on_event(events[i].data.fd);
    for (const int fd : std::exchange(unfinished_, {}))
      if (connections_.contains(fd)) pump(fd);
  }
  return {};
}

void Gateway::on_event(int fd) {
  if (fd == wake_.get()) {
    stopping_ = true;
  } else if (fd == timer_.get()) {
    std::uint64_t ticks = 0;
    [[maybe_unused]] const auto got = ::read(timer_.get(), &ticks, sizeof ticks);
    on_tick();
  } else if (fd == control_.get()) {
    read_control();
  } else if (fd == node_.get()) {
    read_node();
  } else if (connections_.contains(fd)) {
    pump(fd);
  } else {
    for (const auto& [port, listening] : listening_)
      if (listening.fd.get() == fd) return accept_on(port);
  }
}

// ---- the endpoint table

void Gateway::on_tick() {
  if (!control_.valid()) connect_control();
  const auto now = clock_.steady_now();
  for (auto it = asked_.begin(); it != asked_.end();) {
    if (it->second.deadline > now) {
      ++it;
      continue;
    }
    count_down(it->second.port);
    refuse(std::move(it->second.client), "autodl: the node does not answer; try again\r\n");
    it = asked_.erase(it);
  }
  lingering_.clear();
}

void Gateway::connect_control() {
  control_ = connect_unix(config_.control_socket, SOCK_STREAM);
  control_buffer_.clear();
  if (control_.valid() && !watch(control_.get(), EPOLLIN).ok()) control_.reset();
}

void Gateway::read_control() {
  char chunk[64 << 10];
  const auto got = ::recv(control_.get(), chunk, sizeof chunk, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0 || control_buffer_.size() + static_cast<std::size_t>(got) > kSnapshotBytesMax) {
    if (got > 0)
      log_error("gateway", "control's endpoint table is over {} bytes", kSnapshotBytesMax);
    control_.reset();  // the table stays; on_tick connects again
    return;
  }
  control_buffer_.append(chunk, static_cast<std::size_t>(got));
  for (auto end = control_buffer_.find('\n'); end != std::string::npos;
       end = control_buffer_.find('\n')) {
    auto endpoints = parse_endpoints(std::string_view(control_buffer_).substr(0, end));
    control_buffer_.erase(0, end + 1);
    if (endpoints.ok())
      apply(std::move(endpoints).value());
    else
      log_error("gateway", "{}", endpoints.error().message());
  }
}

void Gateway::apply(std::vector<Endpoint> endpoints) {
  std::set<std::uint16_t> wanted;
  for (auto& endpoint : endpoints) {
    wanted.insert(endpoint.port);
    const auto found = listening_.find(endpoint.port);
    if (found == listening_.end())
      listen_on(endpoint);
    else
      found->second.endpoint = endpoint;
  }
  // A port whose lease ended is closed; sessions that are open go on.
  std::erase_if(listening_, [&](const auto& entry) { return !wanted.contains(entry.first); });
}

void Gateway::listen_on(const Endpoint& endpoint) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(endpoint.port);
  if (::inet_pton(AF_INET, endpoint.host.c_str(), &address.sin_addr) != 1) {
    log_error("gateway", "endpoint of instance {}: '{}' is no IPv4 address",
              endpoint.instance.str(), endpoint.host);
    return;
  }
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd.get(), 256) != 0 || !watch(fd.get(), EPOLLIN).ok()) {
    log_error("gateway", "listen on {}:{}: {}", endpoint.host, endpoint.port, std::strerror(errno));
    return;  // the next snapshot tries again
  }
  listening_.emplace(endpoint.port, Listening{std::move(fd), endpoint, 0});
}

// ---- connections

void Gateway::accept_on(std::uint16_t port) {
  auto& listening = listening_.at(port);
  for (int i = 0; i < 32; ++i) {
    sockaddr_in peer{};
    socklen_t length = sizeof peer;
    UniqueFd client(::accept4(listening.fd.get(), reinterpret_cast<sockaddr*>(&peer), &length,
                              SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client.valid()) return shed(listening.fd.get(), errno);
    const auto address = print_address(peer);
    if (!limiter_.admit(address)) continue;  // closed without a word: it would be their amplifier
    set_nodelay(client.get());
    if (listening.endpoint.state != "running" && listening.endpoint.state != "stopping") {
      refuse(std::move(client), not_running_text(listening.endpoint));
    } else if (connections_.size() / 2 + asked_.size() >= config_.connections_max ||
               listening.open >= config_.per_endpoint_max) {
      refuse(std::move(client), "autodl: too many connections; close some and try again\r\n");
    } else {
      ask_node(listening, std::move(client), fmt::format("{}:{}", address, ntohs(peer.sin_port)));
    }
  }
}

// Out of descriptors, what waits at a port would wake the loop for ever: the spare one lets it be
// taken and closed.
void Gateway::shed(int listener, int problem) {
  if (problem != EMFILE && problem != ENFILE) return;
  spare_.reset();
  UniqueFd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)).reset();
  spare_.reset(::eventfd(0, EFD_CLOEXEC));
}

void Gateway::ask_node(Listening& listening, UniqueFd client, const std::string& peer) {
  if (!node_.valid()) connect_node();
  const auto id = next_request_++;
  const auto request = json::serialize(json::object{
      {"id", id},
      {"kind", "ssh"},
      {"instance", listening.endpoint.instance.str()},
      {"client", peer},
      {"local", fmt::format("{}:{}", listening.endpoint.host, listening.endpoint.port)}});
  if (!node_.valid() ||
      ::send(node_.get(), request.data(), request.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    refuse(std::move(client), "autodl: the node is away for a moment; try again\r\n");
    return;
  }
  ++listening.open;
  asked_.emplace(id, Asked{std::move(client), listening.endpoint.port,
                           clock_.steady_now() + config_.ask_deadline});
}

void Gateway::connect_node() {
  node_ = connect_unix(config_.streams_socket, SOCK_SEQPACKET);
  if (node_.valid() && !watch(node_.get(), EPOLLIN).ok()) node_.reset();
}

void Gateway::node_lost() {
  node_.reset();
  for (auto& [id, asked] : asked_) {
    count_down(asked.port);
    refuse(std::move(asked.client), "autodl: the node is away for a moment; try again\r\n");
  }
  asked_.clear();
}

void Gateway::read_node() {
  std::string bytes(kReplyBytesMax, '\0');
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 4)];
  iovec part{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const auto got = ::recvmsg(node_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return node_lost();
  UniqueFd inside;
  for (auto* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const auto count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      inside.reset(fd);  // one is expected; more are closed
    }
  }
  boost::system::error_code failed;
  const auto reply =
      json::parse(json::string_view(bytes.data(), static_cast<std::size_t>(got)), failed);
  if (failed || !reply.is_object()) return;
  const auto* id = reply.get_object().if_contains("id");
  if (id == nullptr || !id->is_number()) return;
  boost::system::error_code bad;
  const auto number = id->to_number<std::uint64_t>(bad);
  const auto found = asked_.find(number);
  if (bad || found == asked_.end()) return;  // its deadline passed
  auto asked = std::move(found->second);
  asked_.erase(found);
  if (inside.valid()) return start_relay(std::move(asked), std::move(inside));
  const auto* text = reply.get_object().if_contains("message");
  std::string why = text != nullptr && text->is_string() ? std::string(text->get_string())
                                                         : std::string("the node refused");
  std::erase_if(why, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  count_down(asked.port);
  refuse(std::move(asked.client), fmt::format("autodl: {}\r\n", why));
}

void Gateway::start_relay(Asked asked, UniqueFd inside) {
  const int a = asked.client.get();
  const int b = inside.get();
  auto connection = std::make_shared<Connection>(
      Connection{Relay(std::move(asked.client), std::move(inside)), asked.port});
  connections_[a] = connections_[b] = connection;
  constexpr std::uint32_t kEdges = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  if (!watch(a, kEdges).ok() || !watch(b, kEdges).ok()) {
    connections_.erase(a);
    connections_.erase(b);
    count_down(asked.port);
    return;
  }
  pump(a);
}

void Gateway::pump(int fd) {
  const auto connection = connections_.at(fd);
  const auto progress = connection->relay.pump();
  if (progress == Relay::Progress::kAgain) unfinished_.insert(connection->relay.client_fd());
  if (progress != Relay::Progress::kOver) return;
  unfinished_.erase(connection->relay.client_fd());
  connections_.erase(connection->relay.client_fd());
  connections_.erase(connection->relay.inside_fd());
  count_down(connection->port);
}

void Gateway::count_down(std::uint16_t port) {
  const auto found = listening_.find(port);
  if (found != listening_.end() && found->second.open > 0) --found->second.open;
}

void Gateway::refuse(UniqueFd client, std::string_view text) {
  [[maybe_unused]] const auto sent =
      ::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::shutdown(client.get(), SHUT_WR);
  // Closing at once with the client's version string unread would reset the connection and the
  // text might never be seen: the descriptor is kept until the next tick.
  if (lingering_.size() < kLingeringMax) lingering_.push_back(std::move(client));
}

}  // namespace autodl
