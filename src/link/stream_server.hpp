// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// StreamServer: the node's side of streams.sock. One thread takes requests, a few make the streams
// (that blocks: a dial, a file worker). Bounded: connections, waiting requests, and of both threads
// and waiting requests the part that one instance may take: a tenant who makes his own instance
// slow to answer keeps nobody else waiting.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "link/link_pipe.hpp"
#include "link/stream_messages.hpp"
#include "link/unix_socket.hpp"

namespace autodl {

class StreamServer {
 public:
  struct Config {
    std::string path;
    SocketRights rights;
    std::optional<uid_t> user;  // besides root
    std::size_t threads = 8;
    std::size_t waiting_max = 1'024;
    std::size_t threads_per_instance = 2;
    std::size_t waiting_per_instance = 128;
    std::size_t connections_max = 256;
  };
  using Opener = std::function<Result<UniqueFd>(const StreamRequest&)>;  // from several threads

  StreamServer(Config config, Opener opener);
  ~StreamServer();
  StreamServer(const StreamServer&) = delete;
  StreamServer& operator=(const StreamServer&) = delete;

  Status start();
  void stop();

 private:
  // Shared by the loop and the jobs of its requests: the last one closes it.
  struct Peer {
    explicit Peer(UniqueFd socket) : fd(std::move(socket)) {}
    UniqueFd fd;
  };
  struct Job {
    std::shared_ptr<Peer> peer;
    StreamRequest request;
  };
  void run();
  void work();
  bool queue(Job job);                   // false: too many wait
  std::deque<Job>::iterator next_job();  // end: none that may be begun now; mutex_ is held
  bool read_from(const std::shared_ptr<Peer>& peer);  // false: gone
  static void answer(const Peer& peer, std::int64_t id, const Result<UniqueFd>& result);

  const Config config_;
  const Opener opener_;
  UniqueFd listening_;
  Waker waker_;
  std::map<int, std::shared_ptr<Peer>> peers_;  // the loop's
  std::mutex mutex_;                            // guards what follows
  std::condition_variable changed_;
  bool stopping_ = false;
  std::deque<Job> jobs_;
  std::map<InstanceId, std::size_t> waiting_, working_;  // of jobs_ and of the threads, by instance
  std::vector<std::thread> threads_;
};

}  // namespace autodl
