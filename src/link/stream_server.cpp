// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "link/stream_server.hpp"

#include <poll.h>
#include <sys/socket.h>

#include "base/log.hpp"

namespace autodl {

StreamServer::StreamServer(Config config, Opener opener)
    : config_(std::move(config)), opener_(std::move(opener)) {}

StreamServer::~StreamServer() {
  stop();
}

Status StreamServer::start() {
  ADL_TRY(fd, listen_unix(config_.path, SOCK_SEQPACKET, config_.rights));
  listening_ = std::move(fd);
  threads_.emplace_back([this] { run(); });
  for (std::size_t i = 0; i < config_.threads; ++i) threads_.emplace_back([this] { work(); });
  return {};
}

void StreamServer::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  waker_.wake();
  for (auto& thread : threads_)
    if (thread.joinable()) thread.join();
  threads_.clear();
}

void StreamServer::run() {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    std::vector<pollfd> wanted{{listening_.get(), POLLIN, 0}, {waker_.fd(), POLLIN, 0}};
    for (const auto& [fd, peer] : peers_) wanted.push_back({fd, POLLIN, 0});
    ::poll(wanted.data(), wanted.size(), -1);
    if ((wanted[1].revents & POLLIN) != 0) waker_.drain();
    for (std::size_t i = 2; i < wanted.size(); ++i) {
      if (wanted[i].revents == 0) continue;
      const auto peer = peers_.at(wanted[i].fd);
      if (!read_from(peer)) peers_.erase(wanted[i].fd);
    }
    if ((wanted[0].revents & POLLIN) == 0) continue;
    UniqueFd fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) continue;
    if (!peer_is(fd.get(), config_.user)) {
      log_warn("streams", "a connection of a user that is neither root nor ours was refused");
      continue;
    }
    if (peers_.size() >= config_.connections_max) continue;
    const int number = fd.get();
    peers_[number] = std::make_shared<Peer>(std::move(fd));
  }
}

bool StreamServer::read_from(const std::shared_ptr<Peer>& peer) {
  auto message = receive_message(peer->fd.get(), kStreamMessageBytesMax, Millis{0});
  if (!message.ok()) return message.error().kind() == ErrorKind::kInvalid;  // too big: skipped
  if (message->bytes.empty()) return false;
  auto request = parse_stream_request(message->bytes);
  if (!request.ok()) {
    answer(*peer, stream_request_id(message->bytes), request.error());
    return true;
  }
  {
    const std::lock_guard lock(mutex_);
    if (jobs_.size() < config_.waiting_max) {
      jobs_.push_back({peer, std::move(request).value()});
      changed_.notify_one();
      return true;
    }
  }
  answer(*peer, request->id,
         Error(ErrorKind::kExhausted, "node_busy", "too many streams are being opened",
               "try again in a few seconds"));
  return true;
}

void StreamServer::work() {
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
      if (stopping_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    answer(*job.peer, job.request.id, opener_(job.request));
  }
}

void StreamServer::answer(const Peer& peer, std::int64_t id, const Result<UniqueFd>& result) {
  StreamReply reply;
  reply.id = id;
  if (!result.ok()) reply.error = result.error();
  const auto sent =
      send_message(peer.fd.get(), to_json(reply), result.ok() ? result.value().get() : -1);
  if (!sent.ok()) log_info("streams", "an answer was not taken: {}", sent.error().message());
}

}  // namespace autodl
