// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// ControlLink: control's end of the link to one node. A thread of its own connects, says hello,
// sends the newest desired set and hands on what comes; where the link breaks it connects again.
//
//   down --connect, hello--> up --broken, silent for 10 s--> down (after 0.2 s … 2 s) ...
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "link/link_messages.hpp"
#include "link/link_pipe.hpp"
#include "model/desired.hpp"
#include "model/observed.hpp"

namespace autodl {

class ControlLink {
 public:
  // All are called on the link's thread and must not block long.
  struct Events {
    std::function<void(const LinkHello&)> up;
    std::function<void(ObservedSet)> observed;
    std::function<void(const LinkEvent&)> event;
    std::function<void(const Error&)> refused;  // the node did not take the desired set
    std::function<void(const Error&)> down;     // after up, once
  };

  ControlLink(std::string path, LinkHello mine, Events events);
  ~ControlLink();  // stops
  ControlLink(const ControlLink&) = delete;
  ControlLink& operator=(const ControlLink&) = delete;

  void start();
  void stop();
  // From any thread. Only the newest is sent; a set that was not sent yet is replaced.
  void send_desired(const DesiredSet& set);

 private:
  void run();
  Status serve(LinkPipe& pipe, bool& up);
  Status take(const Frame& frame, bool& up);
  bool stopping() const;

  const std::string path_;
  const LinkHello mine_;
  const Events events_;
  Waker waker_;
  mutable std::mutex mutex_;  // guards what follows
  bool stopping_ = false;
  std::optional<std::string> desired_;
  std::thread thread_;
};

}  // namespace autodl
