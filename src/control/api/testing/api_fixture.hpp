// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// For tests: the whole of control over real HTTP (core, runner, API, server) with a store in
// memory, a node that does at once what it is told, and file workers and logs that the test makes.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <filesystem>
#include <functional>
#include <future>
#include <thread>

#include "control/api/api.hpp"
#include "http/client.hpp"
#include "http/server.hpp"
#include "http/url.hpp"
#include "store/memory_store.hpp"

namespace autodl::testing {

// Carries out desired sets on the core's thread: disks at once, runs at once, and a command
// "exit N" ends with N. What is written to `hold` stays running.
class InstantNode {
 public:
  void step(ControlCore& core);

 private:
  ObservedInstance observe(const DesiredInstance& wanted);
  std::map<RunId, bool> ended_;
};

// Streams as the test wants them: a function per kind.
class FakeStreams final : public StreamOpener {
 public:
  using Serve = std::function<Result<UniqueFd>(const StreamWish&)>;
  Result<UniqueFd> open(const StreamWish& wish, Millis limit) override;
  void on(const std::string& kind, Serve serve);

 private:
  std::mutex mutex_;
  std::map<std::string, Serve> serves_;
};

class ApiFixture : public ::testing::Test {
 protected:
  ApiFixture();
  ~ApiFixture() override;
  void stop();  // the server and the core; for what must be destroyed after them

  struct Answer {
    int status = 0;
    boost::json::object json;
    http::Response raw;
    std::string text(const char* name) const;
  };
  // Signed with the key unless a token is given; token "-": not at all.
  Answer call(const std::string& method, const std::string& target, const std::string& body = {},
              http::Headers headers = {});
  http::ClientRequest signed_request(const std::string& method, const std::string& target,
                                     const std::string& body, http::Headers headers);
  std::string create(const std::string& more = {});  // the id; more: further JSON members
  void wait_for_state(const std::string& id, const std::string& state);
  http::Client client();

  std::string folder_;
  ManualClock clock_;
  SeededRandom random_{7};
  MemoryStore store_{"01HZZZZZZZZZZZZZZZZZZZZZZZ"};
  SecretBox secrets_{std::array<unsigned char, 32>{}};
  ImageCatalogue catalogue_;
  InstantNode node_;
  FakeStreams streams_;
  BlockingPool pool_{2, 100};
  boost::asio::io_context loop_{1};
  std::optional<CoreRunner> runner_;
  std::optional<Api> api_;
  std::optional<http::Server> server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
  std::string token_, access_key_, secret_key_, account_;
  std::int64_t nonce_ = 0;
};

}  // namespace autodl::testing
