// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "link/stream_server.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/log.hpp"

namespace autodl {

namespace {
constexpr int kAnswerLimitMs = 2'000;
}  // namespace

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
  const auto id = request->id;
  if (queue({peer, std::move(request).value()})) return true;
  answer(*peer, id,
         Error(ErrorKind::kExhausted, "node_busy", "too many streams are being opened",
               "try again in a few seconds"));
  return true;
}

bool StreamServer::queue(Job job) {
  const std::lock_guard lock(mutex_);
  const auto own = waiting_.find(job.request.instance);
  if (jobs_.size() >= config_.waiting_max ||
      (own != waiting_.end() && own->second >= config_.waiting_per_instance))
    return false;
  ++waiting_[job.request.instance];
  jobs_.push_back(std::move(job));
  changed_.notify_one();
  return true;
}

std::deque<StreamServer::Job>::iterator StreamServer::next_job() {
  return std::find_if(jobs_.begin(), jobs_.end(), [&](const Job& job) {
    const auto own = working_.find(job.request.instance);
    return own == working_.end() || own->second < config_.threads_per_instance;
  });
}

void StreamServer::work() {
  const auto less = [](auto& counts, const InstanceId& instance) {
    const auto found = counts.find(instance);
    if (--found->second == 0) counts.erase(found);
  };
  std::unique_lock lock(mutex_);
  for (;;) {
    auto next = jobs_.end();
    changed_.wait(lock, [&] { return stopping_ || (next = next_job()) != jobs_.end(); });
    if (stopping_) return;
    const Job job = std::move(*next);
    jobs_.erase(next);
    const auto& instance = job.request.instance;
    less(waiting_, instance);
    ++working_[instance];
    lock.unlock();
    answer(*job.peer, job.request.id, opener_(job.request));
    lock.lock();
    less(working_, instance);
    // What was passed over may be begun now, by this thread or by one that waits.
    changed_.notify_one();
  }
}

void StreamServer::answer(const Peer& peer, std::int64_t id, const Result<UniqueFd>& result) {
  StreamReply reply;
  reply.id = id;
  if (!result.ok()) reply.error = result.error();
  // In a flood of requests the asker falls behind for a moment: an answer that is dropped lets
  // somebody wait in vain.
  pollfd room{peer.fd.get(), POLLOUT, 0};
  ::poll(&room, 1, kAnswerLimitMs);
  const auto sent =
      send_message(peer.fd.get(), to_json(reply), result.ok() ? result.value().get() : -1);
  if (!sent.ok()) log_info("streams", "an answer was not taken: {}", sent.error().message());
}

}  // namespace autodl
