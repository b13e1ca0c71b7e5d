// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// SocketInitLinks: control streams over TCP. One thread reads all of them and hands on what init
// says; calls write from their own threads. What init sends is hostile (a tenant with root inside
// may have taken it over): bounded frames, strict messages, and at most a few reports per second.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "agent/init_links.hpp"
#include "base/random.hpp"
#include "base/unique_fd.hpp"
#include "wire/frames.hpp"
#include "wire/proxy_v2.hpp"

namespace autodl {

class SocketInitLinks final : public InitLinks {
 public:
  // port: init's, another one in tests.
  SocketInitLinks(InitEventSink sink, Random& random, std::uint16_t port = kInitPort);
  ~SocketInitLinks() override;
  SocketInitLinks(const SocketInitLinks&) = delete;
  SocketInitLinks& operator=(const SocketInitLinks&) = delete;

  Result<InitReady> connect(const InitTarget& target, Millis limit) override;
  Status go(const InstanceId& instance, const RunId& run) override;
  Status stop(const InstanceId& instance, const InitStop& stop) override;
  Status keys(const InstanceId& instance, const std::vector<AccessKey>& keys) override;
  Status samples(const InstanceId& instance, const std::string& json) override;
  void close(const InstanceId& instance) override;

 private:
  // Shared by the map, the reading thread and a call that writes.
  struct Link {
    UniqueFd fd;
    InstanceId instance;
    RunId run;
    FrameReader reader;
    InitReady ready;
    bool is_ready = false;
    int reports_left = 20;  // refilled every second
    std::mutex write_mutex;
  };
  using LinkPtr = std::shared_ptr<Link>;

  Result<LinkPtr> dial(const InitTarget& target, Millis limit);
  Status await_ready(Link& link, Millis limit);
  Status write(Link& link, InitFrame type, std::string_view payload);
  Status send(const InstanceId& instance, InitFrame type, std::string_view payload);
  void run();
  bool read_from(const LinkPtr& link);
  bool take(Link& link, const Frame& frame);
  void drop(const LinkPtr& link);
  void wake() const;

  const InitEventSink sink_;
  Random& random_;
  const std::uint16_t port_;
  UniqueFd waker_;
  std::mutex mutex_;  // guards what follows
  bool stopping_ = false;
  std::map<InstanceId, LinkPtr> links_;
  std::thread thread_;
};

}  // namespace autodl
