// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "http/client.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <tuple>

#include "http/sse.hpp"
#include "http/testing/server_in_thread.hpp"
#include "net/splice.hpp"

namespace autodl::http {
namespace {

using testing::ServerInThread;

Task<void> answer_with_body(Exchange& exchange) {
  Response response;
  response.status = 201;
  response.headers.add("X-Peer", exchange.request().peer);
  response.body = exchange.request().body;
  std::ignore = co_await exchange.send(std::move(response));
}

Task<void> many_events(Exchange& exchange) {
  Headers none;
  std::ignore = co_await exchange.begin_stream(200, std::move(none));
  for (int i = 0; i < 1'000; ++i) {
    const auto sent = co_await exchange.write_stream(format_sse(std::to_string(i), "n", "x"));
    if (!sent.ok()) co_return;
  }
  std::ignore = co_await exchange.end_stream();
}

Task<void> mirror(Exchange& exchange) {
  auto upgraded = co_await exchange.upgrade("mirror");
  if (!upgraded.ok()) co_return;
  std::vector<char> buffer(100);
  while (true) {
    const auto got = co_await upgraded->conn->read_some(buffer);
    if (!got.ok() || *got == 0) break;
    const auto sent = co_await upgraded->conn->write_all({buffer.data(), *got}, {});
    if (!sent.ok()) break;
  }
}

Router sample() {
  Router router;
  const auto add = [&router](const char* method, const char* pattern, Handler handler) {
    Route route;
    route.method = method;
    route.pattern = pattern;
    route.handler = std::move(handler);
    route.body_bytes_max = 10'000'000;
    router.add(std::move(route));
  };
  add("POST", "/body", answer_with_body);
  add("GET", "/events", many_events);
  add("POST", "/mirror", mirror);
  return router;
}

ClientRequest post(const char* target, std::string_view body = {}) {
  ClientRequest request;
  request.method = "POST";
  request.target = target;
  request.body = body;
  return request;
}

TEST(Client, TwoCalls_OneConnection) {
  ServerInThread server(sample());
  auto client = Client::make(server.url()).value();
  const std::string big(5'000'000, 'z');
  const auto first = client.send(post("/body", big));
  ASSERT_TRUE(first.ok()) << first.error().message();
  EXPECT_EQ(first->status, 201);
  EXPECT_EQ(first->body, big);
  const auto second = client.send(post("/body", "x"));
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->headers.get("X-Peer"), first->headers.get("X-Peer"));
}

TEST(Client, ServerRestartedBetweenCalls_RepeatedOnlyWithKey) {
  auto options = ServerInThread::quiet();
  options.silence_limit = Millis(20);  // so that the kept connection is closed by the server
  ServerInThread server(sample(), options);
  auto client = Client::make(server.url()).value();
  ASSERT_TRUE(client.send(post("/body", "1")).ok());
  // Another connection that the server closes later than the first: when it is, so is the first.
  testing::RawClient other(server.port());
  EXPECT_EQ(other.read_to_end(), "");
  const auto plain = client.send(post("/body", "2"));
  EXPECT_FALSE(plain.ok());
  ASSERT_TRUE(client.send(post("/body", "3")).ok());
  testing::RawClient another(server.port());
  EXPECT_EQ(another.read_to_end(), "");
  auto keyed = post("/body", "4");
  keyed.headers.add("Idempotency-Key", "k");
  const auto repeated = client.send(keyed);
  ASSERT_TRUE(repeated.ok()) << repeated.error().message();
  EXPECT_EQ(repeated->body, "4");
}

TEST(Client, Stream_EventsAndHangUp) {
  ServerInThread server(sample());
  auto client = Client::make(server.url()).value();
  SseReader reader;
  int count = 0;
  const auto take = [&](std::string_view bytes) {
    reader.put(bytes);
    while (true) {
      auto event = reader.next();
      if (!event.ok() || !*event) return true;
      ++count;
    }
  };
  ClientRequest request;
  request.target = "/events";
  ASSERT_TRUE(client.stream(request, take).ok());
  EXPECT_EQ(count, 1'000);
  ASSERT_TRUE(client.stream(request, [](std::string_view) { return false; }).ok());
  ASSERT_TRUE(client.send(post("/body", "after")).ok());  // on a new connection
}

TEST(Client, Upgrade_TalksRaw) {
  ServerInThread server(sample());
  auto client = Client::make(server.url()).value();
  Response refused;
  auto upgraded = client.upgrade(post("/mirror"), "mirror", &refused);
  ASSERT_TRUE(upgraded.ok());
  ASSERT_EQ(::send(upgraded->socket.get(), "abc", 3, 0), 3);
  char back[3];
  ASSERT_EQ(::recv(upgraded->socket.get(), back, 3, MSG_WAITALL), 3);
  EXPECT_EQ(std::string(back, 3), "abc");
  EXPECT_FALSE(client.upgrade(post("/body"), "mirror", &refused).ok());
  EXPECT_EQ(refused.status, 201);
}

TEST(Client, NobodyListens_ConnectFailed) {
  std::uint16_t port = 0;
  {
    ServerInThread server(sample());
    port = server.port();
  }
  auto client = Client::make("http://127.0.0.1:" + std::to_string(port)).value();
  const auto answer = client.send(post("/body"));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), "connect_failed");
  EXPECT_FALSE(Client::make("nonsense").ok());
}

}  // namespace
}  // namespace autodl::http
