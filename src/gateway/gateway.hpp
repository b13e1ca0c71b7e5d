// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Gateway: accepts on the instances' endpoints and carries bytes to them. One thread, one epoll
// loop; run() returns after stop() (callable from any thread or a signal handler).
//
//   accept --not running--> says so, closes
//      | running
//      v
//   asked (node makes the stream; deadline) --refused, late--> says so, closes
//      | descriptor
//      v
//   relayed --both ends closed, or one broke--> gone
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "gateway/endpoints.hpp"
#include "gateway/rate_limit.hpp"
#include "gateway/relay.hpp"

namespace autodl {

struct GatewayConfig {
  std::string control_socket;  // where control tells the endpoint table
  std::string streams_socket;  // where the node makes streams
  std::size_t connections_max = 8'192;
  std::size_t per_endpoint_max = 512;
  std::chrono::milliseconds ask_deadline{10'000};
  RateLimiter::Limits rate{};
};

class Gateway {
 public:
  Gateway(GatewayConfig config, const Clock& clock);
  ~Gateway();

  Status run();
  void stop();

 private:
  struct Asked {
    UniqueFd client;
    std::uint16_t port = 0;
    SteadyTime deadline{};
  };
  struct Connection {
    Relay relay;
    std::uint16_t port = 0;
  };
  struct Listening {
    UniqueFd fd;
    Endpoint endpoint;
    std::size_t open = 0;
  };

  Status watch(int fd, std::uint32_t events);
  void on_event(int fd);
  void on_tick();
  void connect_control();
  void read_control();
  void apply(std::vector<Endpoint> endpoints);
  void listen_on(const Endpoint& endpoint);
  void accept_on(std::uint16_t port);
  void shed(int listener, int problem);
  void ask_node(Listening& listening, UniqueFd client, const std::string& peer);
  void connect_node();
  void read_node();
  void node_lost();
  void start_relay(Asked asked, UniqueFd inside);
  void pump(int fd);
  void refuse(UniqueFd client, std::string_view text);
  void count_down(std::uint16_t port);

  const GatewayConfig config_;
  const Clock& clock_;
  RateLimiter limiter_;
  UniqueFd epoll_, wake_, timer_, control_, node_;
  UniqueFd spare_;  // given up for a moment where descriptors run out
  std::string control_buffer_;
  std::map<std::uint16_t, Listening> listening_;
  std::map<std::uint64_t, Asked> asked_;
  std::map<int, std::shared_ptr<Connection>> connections_;  // both descriptors of a relay share it
  std::set<int> unfinished_;        // clients of relays that took their share and have more to do
  std::deque<UniqueFd> lingering_;  // refused ones: kept a moment so that the text arrives
  std::uint64_t next_request_ = 1;
  bool stopping_ = false;
};

}  // namespace autodl
