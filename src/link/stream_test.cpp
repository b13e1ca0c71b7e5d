// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <thread>

#include "link/stream_client.hpp"
#include "link/stream_server.hpp"

namespace autodl {
namespace {

const InstanceId kInstance("01ARZ3NDEKTSV4RRFFQ69G5FAV");

class StreamTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/autodl-streams-XXXXXX";
    folder_ = ::mkdtemp(pattern);
    path_ = folder_ + "/streams.sock";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  StreamServer::Config config() const {
    StreamServer::Config config;
    config.path = path_;
    config.user = ::getuid();
    return config;
  }
  // Gives one end of a socketpair that greets with the client's name.
  static Result<UniqueFd> greet(const StreamRequest& request) {
    if (request.kind == "tcp")
      return Error(ErrorKind::kConflict, "not_running", "instance 001 is stopped", "start it");
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
      return errno_error("make a pair", errno);
    UniqueFd mine(pair[0]);
    UniqueFd theirs(pair[1]);
    if (::send(mine.get(), request.client.data(), request.client.size(), 0) < 0)
      return errno_error("greet", errno);
    return theirs;
  }
  std::string folder_, path_;
};

TEST_F(StreamTest, DescriptorArrivesAndWorks) {
  StreamServer server(config(), greet);
  ASSERT_TRUE(server.start().ok());
  StreamClient client(path_);
  std::vector<std::future<std::string>> answers;
  for (int i = 0; i < 50; ++i)
    answers.push_back(std::async(std::launch::async, [&client, i] {
      StreamRequest request;
      request.kind = "ssh";
      request.instance = kInstance;
      request.client = "10.0.0." + std::to_string(i) + ":1";
      auto fd = client.open(request, Millis{5'000});
      if (!fd.ok()) return fd.error().message();
      char text[64];
      const auto got = ::recv(fd->get(), text, sizeof text, 0);
      return std::string(text, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    }));
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(answers[static_cast<std::size_t>(i)].get(), "10.0.0." + std::to_string(i) + ":1");
}

TEST_F(StreamTest, RefusalArrivesWhole) {
  StreamServer server(config(), greet);
  ASSERT_TRUE(server.start().ok());
  StreamRequest request;
  request.kind = "tcp";
  request.instance = kInstance;
  request.port = 80;
  const auto refused = StreamClient(path_).open(request, Millis{5'000});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error(),
            Error(ErrorKind::kConflict, "not_running", "instance 001 is stopped", "start it"));
}

TEST_F(StreamTest, NobodyThere_IsUnavailable) {
  StreamRequest request;
  request.kind = "ssh";
  request.instance = kInstance;
  const auto refused = StreamClient(path_).open(request, Millis{100});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), "node_away");
}

TEST_F(StreamTest, SlowOpener_TheClientStopsWaiting) {
  std::promise<void> let_go;
  auto waiting = let_go.get_future().share();
  StreamServer server(config(), [waiting](const StreamRequest&) -> Result<UniqueFd> {
    waiting.wait();
    return Error(ErrorKind::kInternal, "late", "late");
  });
  ASSERT_TRUE(server.start().ok());
  StreamRequest request;
  request.kind = "ssh";
  request.instance = kInstance;
  const auto refused = StreamClient(path_).open(request, Millis{50});
  EXPECT_EQ(refused.error().code(), "timed_out");
  let_go.set_value();
}

TEST_F(StreamTest, MalformedRequests_AreAnsweredAndHarmNothing) {
  StreamServer server(config(), greet);
  ASSERT_TRUE(server.start().ok());
  auto raw = connect_unix(path_, SOCK_SEQPACKET).value();
  for (const char* text :
       {"x", "{\"id\":4,\"kind\":\"root\",\"instance\":\"01ARZ3NDEKTSV4RRFFQ69G5FAV\"}",
        "{\"id\":4,\"kind\":\"ssh\",\"instance\":\"../../etc\"}"}) {
    ASSERT_TRUE(send_message(raw.get(), text).ok());
    const auto answer = receive_message(raw.get(), 4096, Millis{5'000});
    ASSERT_TRUE(answer.ok());
    EXPECT_FALSE(answer->fd.valid());
    EXPECT_TRUE(parse_stream_reply(answer->bytes).value().error.has_value()) << text;
  }
}

TEST(StreamMessages_RoundTrip, KeepsAll) {
  StreamRequest request{9,           "log",        kInstance, RunId("01ARZ3NDEKTSV4RRFFQ69G5FAB"),
                        "1.2.3.4:5", "6.7.8.9:10", 0};
  EXPECT_EQ(parse_stream_request(to_json(request)).value(), request);
}

// An instance whose init answers nobody holds the thread of each request for as long as a dial
// may take. Requests for others are served all the same, and its own are served in the end.
TEST_F(StreamTest, SlowInstance_KeepsNoOtherWaiting) {
  const InstanceId slow("01ARZ3NDEKTSV4RRFFQ69G5FAW");
  std::promise<void> let_go;
  const auto gone = let_go.get_future().share();
  StreamServer server(config(), [&, gone](const StreamRequest& request) {
    if (request.instance == slow) gone.wait();
    return greet(request);
  });
  ASSERT_TRUE(server.start().ok());
  StreamClient client(path_);
  const auto ask = [&client](const InstanceId& instance) {
    StreamRequest request;
    request.kind = "ssh";
    request.instance = instance;
    request.client = "10.0.0.1:1";
    return client.open(request, Millis{20'000}).ok();
  };
  std::vector<std::future<bool>> waiting;
  for (int i = 0; i < 32; ++i)
    waiting.push_back(std::async(std::launch::async, [&] { return ask(slow); }));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(ask(kInstance));
  let_go.set_value();
  for (auto& answer : waiting) EXPECT_TRUE(answer.get());
}

}  // namespace
}  // namespace autodl
