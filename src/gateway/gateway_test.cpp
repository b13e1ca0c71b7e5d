// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "gateway/gateway.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cstring>
#include <thread>

#include "base/random.hpp"

namespace autodl {
namespace {

const InstanceId kInstance("01ARZ3NDEKTSV4RRFFQ69G5FAV");

TEST(RateLimiter_Burst, IsThenRefusedAndRefills) {
  ManualClock clock;
  RateLimiter limiter({.burst = 3, .per_second = 1, .addresses_max = 2}, clock);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limiter.admit("10.0.0.1"));
  EXPECT_FALSE(limiter.admit("10.0.0.1"));
  clock.advance(std::chrono::seconds{1});
  EXPECT_TRUE(limiter.admit("10.0.0.1"));
  EXPECT_FALSE(limiter.admit("10.0.0.1"));
}

TEST(RateLimiter_ManyAddresses, StaysBounded) {
  ManualClock clock;
  RateLimiter limiter({.burst = 2, .per_second = 1, .addresses_max = 2}, clock);
  EXPECT_TRUE(limiter.admit("a"));
  EXPECT_TRUE(limiter.admit("b"));
  EXPECT_FALSE(limiter.admit("c"));  // both known ones are below full: nothing can be forgotten
  clock.advance(std::chrono::seconds{2});
  EXPECT_TRUE(limiter.admit("c"));
  EXPECT_LE(limiter.known(), 2U);
}

TEST(Endpoints_RoundTrip, KeepsAll) {
  const std::vector<Endpoint> rows = {{"127.0.0.1", 20'001, kInstance, "名字 \"x\"", "running"}};
  const auto line = print_endpoints(rows);
  EXPECT_EQ(line.back(), '\n');
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(parse_endpoints(line).value(), rows);
}

TEST(Endpoints_NotRunning, IsOneLineOfPlainText) {
  const Endpoint endpoint{"127.0.0.1", 1, InstanceId(std::string(26, '0')), "a\x1b[1m", "x\r\ny"};
  const auto text = not_running_text(endpoint);
  EXPECT_EQ(text, "autodl: instance a[1m is xy; start it with: autodl start a[1m\r\n");
}

TEST(Endpoints_Malformed, IsRefused) {
  for (const char* text :
       {"", "[]", "{}", "{\"endpoints\":3}", "{\"endpoints\":[3]}",
        "{\"endpoints\":[{\"host\":\"h\",\"port\":0,\"instance\":\"01ARZ3NDEKTSV4RRFFQ69G5FAV\"}]}",
        "{\"endpoints\":[{\"host\":\"h\",\"port\":1,\"instance\":\"../x\"}]}"})
    EXPECT_FALSE(parse_endpoints(text).ok()) << text;
}

// A gateway with its two peers played by the test: control (table) and node (streams).
class GatewayTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/autodl-gateway-XXXXXX";
    folder_ = ::mkdtemp(pattern);
    control_listener_ = listen_unix(folder_ + "/control.sock", SOCK_STREAM);
    node_listener_ = listen_unix(folder_ + "/streams.sock", SOCK_SEQPACKET);
    port_ = free_port();
    gateway_ =
        std::make_unique<Gateway>(GatewayConfig{.control_socket = folder_ + "/control.sock",
                                                .streams_socket = folder_ + "/streams.sock",
                                                .ask_deadline = std::chrono::milliseconds{300}},
                                  clock_);
    thread_ = std::thread([this] { EXPECT_TRUE(gateway_->run().ok()); });
    control_.reset(::accept(control_listener_.get(), nullptr, nullptr));
  }

  void TearDown() override {
    gateway_->stop();
    thread_.join();
    ::unlink((folder_ + "/control.sock").c_str());
    ::unlink((folder_ + "/streams.sock").c_str());
    ::rmdir(folder_.c_str());
  }

  static UniqueFd listen_unix(const std::string& path, int type) {
    UniqueFd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size());
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd.get(), 8), 0);
    return fd;
  }

  static std::uint16_t free_port() {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length);
    ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length);
    return ntohs(address.sin_port);
  }

  void tell(const std::string& state) {
    const auto line = print_endpoints({{"127.0.0.1", port_, kInstance, "001", state}});
    ASSERT_EQ(::send(control_.get(), line.data(), line.size(), 0),
              static_cast<ssize_t>(line.size()));
  }

  // Connects as soon as the gateway listens (the table was just sent).
  UniqueFd dial() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{5};
    while (std::chrono::steady_clock::now() < end) {
      UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
        return fd;
      std::this_thread::yield();
    }
    ADD_FAILURE() << "the gateway does not listen";
    return UniqueFd{};
  }

  static std::string read_all(int fd) {
    std::string text;
    char chunk[65536];
    for (;;) {
      const auto got = ::recv(fd, chunk, sizeof chunk, 0);
      if (got <= 0) return text;
      text.append(chunk, static_cast<std::size_t>(got));
    }
  }

  // Plays the node: takes one request; answers with a descriptor or a refusal.
  boost::json::object take_request() {
    if (!node_.valid()) node_.reset(::accept(node_listener_.get(), nullptr, nullptr));
    char bytes[65536];
    const auto got = ::recv(node_.get(), bytes, sizeof bytes, 0);
    EXPECT_GT(got, 0);
    return boost::json::parse(boost::json::string_view(bytes, static_cast<std::size_t>(got)))
        .as_object();
  }

  void answer(const std::string& reply, int fd) {
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    iovec part{const_cast<char*>(reply.data()), reply.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (fd >= 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      auto* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof fd);
      std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    ASSERT_GT(::sendmsg(node_.get(), &message, 0), 0);
  }

  SystemClock clock_;
  std::string folder_;
  UniqueFd control_listener_, node_listener_, control_, node_;
  std::uint16_t port_ = 0;
  std::unique_ptr<Gateway> gateway_;
  std::thread thread_;
};

TEST_F(GatewayTest, NotRunning_IsToldInPlainText) {
  tell("stopped");
  const auto client = dial();
  EXPECT_EQ(read_all(client.get()),
            "autodl: instance 001 is stopped; start it with: autodl start 001\r\n");
}

TEST_F(GatewayTest, Running_CarriesBothWaysWithHalfClose) {
  tell("running");
  const auto client = dial();
  const auto request = take_request();
  EXPECT_EQ(request.at("kind").as_string(), "ssh");
  EXPECT_EQ(request.at("instance").as_string(), kInstance.str());
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
  UniqueFd mine(pair[0]);
  {
    UniqueFd theirs(pair[1]);
    answer("{\"id\":" + std::to_string(request.at("id").to_number<int>()) + ",\"ok\":true}",
           theirs.get());
  }
  // 20 MB each way at once: more than any buffer on the way holds.
  std::string sent(20 << 20, '\0');
  SeededRandom(3).fill({reinterpret_cast<unsigned char*>(sent.data()), 4096});
  std::thread inside([&] {
    ::fcntl(mine.get(), F_SETFL, 0);
    std::string got(sent.size(), '\0');
    std::size_t done = 0;
    std::thread writer([&] {
      std::size_t written = 0;
      while (written < sent.size()) {
        const auto n = ::send(mine.get(), sent.data() + written, sent.size() - written, 0);
        if (n <= 0) break;
        written += static_cast<std::size_t>(n);
      }
      ::shutdown(mine.get(), SHUT_WR);
    });
    while (done < got.size()) {
      const auto n = ::recv(mine.get(), got.data() + done, got.size() - done, 0);
      if (n <= 0) break;
      done += static_cast<std::size_t>(n);
    }
    writer.join();
    EXPECT_EQ(got, sent);
  });
  std::thread outside([&] {
    std::size_t written = 0;
    while (written < sent.size()) {
      const auto n = ::send(client.get(), sent.data() + written, sent.size() - written, 0);
      if (n <= 0) break;
      written += static_cast<std::size_t>(n);
    }
    ::shutdown(client.get(), SHUT_WR);
  });
  EXPECT_EQ(read_all(client.get()), sent);
  outside.join();
  inside.join();
}

TEST_F(GatewayTest, NodeRefuses_ItsWordReachesTheClient) {
  tell("running");
  const auto client = dial();
  const auto request = take_request();
  answer("{\"id\":" + std::to_string(request.at("id").to_number<int>()) +
             ",\"ok\":false,\"message\":\"the run ended\\u001b[2J\"}",
         -1);
  EXPECT_EQ(read_all(client.get()), "autodl: the run ended[2J\r\n");
}

TEST_F(GatewayTest, NodeSilent_TheDeadlineIsTold) {
  tell("running");
  const auto client = dial();
  take_request();
  EXPECT_EQ(read_all(client.get()), "autodl: the node does not answer; try again\r\n");
}

TEST_F(GatewayTest, ControlAway_TheTableIsKept) {
  tell("stopped");
  {
    const auto client = dial();
    EXPECT_FALSE(read_all(client.get()).empty());
  }
  control_.reset();
  const auto client = dial();
  EXPECT_NE(read_all(client.get()).find("is stopped"), std::string::npos);
}

}  // namespace
}  // namespace autodl
