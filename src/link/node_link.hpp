// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// NodeLink: the node's end of the link. Listens on link.sock; only root and the platform's user may
// connect. The newest connection is the link: a control that came back replaces the old one.
// A thread of its own; what control sends is hostile until it is parsed.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/result.hpp"
#include "link/link_messages.hpp"
#include "link/link_pipe.hpp"
#include "link/unix_socket.hpp"
#include "model/desired.hpp"
#include "model/observed.hpp"

namespace autodl {

class NodeLink {
 public:
  struct Config {
    std::string path;
    SocketRights rights;
    std::optional<uid_t> user;  // besides root
    LinkHello mine;
  };
  // Called on the link's thread. What desired() returns as an error is told to control.
  struct Events {
    std::function<Status(DesiredSet)> desired;
    std::function<void()> connected;
  };

  NodeLink(Config config, Events events);
  ~NodeLink();
  NodeLink(const NodeLink&) = delete;
  NodeLink& operator=(const NodeLink&) = delete;

  Status start();
  void stop();
  // From any thread. Of observed sets only the newest is sent; events wait in a bounded queue.
  void send_observed(const ObservedSet& set);
  void send_event(const LinkEvent& event);

 private:
  void run();
  void accept_one();
  Status serve_once(LinkPipe& pipe);
  Status take(LinkPipe& pipe, const Frame& frame);

  const Config config_;
  const Events events_;
  UniqueFd listening_;
  Waker waker_;
  std::unique_ptr<LinkPipe> pipe_;
  bool greeted_ = false;  // control said hello on this pipe
  std::string last_refusal_;
  std::mutex mutex_;  // guards what follows
  bool stopping_ = false;
  std::optional<std::string> observed_;
  std::deque<std::string> events_out_;
  std::thread thread_;
};

}  // namespace autodl
