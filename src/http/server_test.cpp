// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "http/server.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <tuple>

#include "async/notifier.hpp"
#include "http/sse.hpp"
#include "http/testing/server_in_thread.hpp"
#include "net/splice.hpp"

namespace autodl::http {
namespace {

using testing::RawClient;
using testing::ServerInThread;

Task<void> echo(Exchange& exchange) {
  Response response;
  response.body = exchange.request().method + " " + exchange.request().path + "?" +
                  exchange.request().query + " " + exchange.request().body;
  std::ignore = co_await exchange.send(std::move(response));
}

Task<void> count_body(Exchange& exchange) {
  std::size_t total = 0;
  std::vector<char> buffer(10'000);
  while (true) {
    const auto got = co_await exchange.read_body(buffer);
    if (!got.ok()) {
      Response refused;
      refused.status = got.error().code() == "body_too_long" ? 413 : 400;
      std::ignore = co_await exchange.send(std::move(refused));
      co_return;
    }
    if (*got == 0) break;
    total += *got;
  }
  Response response;
  response.body = std::to_string(total);
  std::ignore = co_await exchange.send(std::move(response));
}

Task<void> events(Exchange& exchange) {
  Headers headers{{"Content-Type", "text/event-stream"}};
  std::ignore = co_await exchange.begin_stream(200, std::move(headers));
  for (int i = 1; i <= 3; ++i)
    std::ignore = co_await exchange.write_stream(format_sse(std::to_string(i), "n", "x"));
  std::ignore = co_await exchange.end_stream();
}

Task<void> shout(Exchange& exchange) {
  auto upgraded = co_await exchange.upgrade("shout");
  if (!upgraded.ok()) {
    Response refused;
    refused.status = 426;
    std::ignore = co_await exchange.send(std::move(refused));
    co_return;
  }
  Conn& conn = *upgraded->conn;
  std::string text = upgraded->leftover;
  std::vector<char> buffer(100);
  while (true) {
    const auto got = co_await conn.read_some(buffer);
    if (!got.ok() || *got == 0) break;
    text.append(buffer.data(), *got);
  }
  std::ignore = co_await conn.write_all("HEARD " + text);
}

Task<void> throws(Exchange&) {
  throw std::runtime_error("a secret");
  co_return;
}
Task<void> silent(Exchange&) {
  co_return;
}

// Waits until the server stops.
Task<void> waits(Exchange& exchange) {
  Notifier never(co_await boost::asio::this_coro::executor);
  Headers none;
  std::ignore = co_await exchange.begin_stream(200, std::move(none));
  std::ignore = co_await exchange.write_stream("begun");
  while (!exchange.stopping()) std::ignore = co_await never.wait(0, Millis(5));
  std::ignore = co_await exchange.write_stream("stopped");
  std::ignore = co_await exchange.end_stream();
}

Router sample() {
  Router router;
  const auto add = [&router](const char* method, const char* pattern, Handler handler,
                             BodyMode mode = BodyMode::kWhole, std::size_t limit = 1'000) {
    Route route;
    route.method = method;
    route.pattern = pattern;
    route.handler = std::move(handler);
    route.body = mode;
    route.body_bytes_max = limit;
    router.add(std::move(route));
  };
  add("GET", "/echo", echo);
  add("POST", "/echo", echo);
  add("PUT", "/count", count_body, BodyMode::kStreamed, 5'000'000);
  add("GET", "/events", events);
  add("POST", "/shout", shout);
  add("GET", "/throws", throws);
  add("GET", "/silent", silent);
  add("GET", "/waits", waits);
  return router;
}

// The whole answer to one request on a connection of its own.
std::string ask(std::uint16_t port, std::string_view request) {
  RawClient client(port);
  client.send(request);
  client.end();
  return client.read_to_end();
}

bool is(std::string_view answer, int status) {
  return answer.substr(0, 13) == "HTTP/1.1 " + std::to_string(status) + " ";
}

TEST(Server, KeepAliveAndPipelining_AnswersInOrder) {
  ServerInThread server(sample());
  RawClient client(server.port());
  client.send(
      "GET /echo?a=1 HTTP/1.1\r\nHost: x\r\n\r\n"
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhiGET /echo HTTP/1.1\r\nHost: "
      "x\r\n\r\n");
  EXPECT_TRUE(is(client.read_until("GET /echo?a=1 "), 200));
  EXPECT_TRUE(is(client.read_until("POST /echo? hi"), 200));
  EXPECT_TRUE(is(client.read_until("GET /echo? "), 200));
}

TEST(Server, Answer_HasIdAndDate) {
  ServerInThread server(sample());
  const auto answer =
      ask(server.port(), "GET /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_NE(answer.find("\r\nX-Request-Id: req_"), std::string::npos) << answer;
  EXPECT_NE(answer.find("\r\nDate: "), std::string::npos);
  EXPECT_NE(answer.find("\r\nConnection: close\r\n"), std::string::npos);
}

TEST(Server, Head_LengthWithoutBody) {
  ServerInThread server(sample());
  const auto answer = ask(server.port(), "HEAD /echo HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(answer.find("Content-Length: 12\r\n"), std::string::npos) << answer;
  EXPECT_EQ(answer.substr(answer.size() - 4), "\r\n\r\n");
}

TEST(Server, WrongRequests_Statuses) {
  ServerInThread server(sample());
  struct Row {
    std::string request;
    int status;
  };
  const std::string host = "Host: x\r\n";
  for (const auto& row : std::vector<Row>{
           {"GET /nothing HTTP/1.1\r\n" + host + "\r\n", 404},
           {"PUT /echo HTTP/1.1\r\n" + host + "\r\n", 405},
           {"TRACE /echo HTTP/1.1\r\n" + host + "\r\n", 405},
           {"GET /echo HTTP/1.1\r\n\r\n", 400},                      // no Host
           {"GET /echo HTTP/1.1\r\n" + host + host + "\r\n", 400},   // two
           {"GET http://x/echo HTTP/1.1\r\n" + host + "\r\n", 400},  // a proxy's form
           {"garbage\r\n\r\n", 400},
           {"\x16\x03\x01 TLS?\r\n\r\n", 400},
           {"GET /echo HTTP/3.0\r\n" + host + "\r\n", 505},
           {"GET /echo HTTP/1.1\r\n" + host + "X: " + std::string(40'000, 'x') + "\r\n\r\n", 431},
           {"GET /" + std::string(70'000, 'x'), 431},
           {"POST /echo HTTP/1.1\r\n" + host + "Content-Length: 1001\r\n\r\n", 413},
           {"POST /echo HTTP/1.1\r\n" + host + "Content-Length: x\r\n\r\n", 400},
           {"POST /echo HTTP/1.1\r\n" + host +
                "Content-Length: 5\r\nTransfer-Encoding: chunked"
                "\r\n\r\n0\r\n\r\n",
            400},  // smuggling
           {"POST /echo HTTP/1.1\r\n" + host + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
            400},
           {"POST /echo HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
           {"GET /throws HTTP/1.1\r\n" + host + "\r\n", 500},
           {"GET /silent HTTP/1.1\r\n" + host + "\r\n", 500},
           {"POST /shout HTTP/1.1\r\n" + host + "Content-Length: 0\r\n\r\n", 426}}) {
    const auto answer = ask(server.port(), row.request);
    EXPECT_TRUE(is(answer, row.status)) << row.request.substr(0, 100) << "\n" << answer;
    EXPECT_EQ(answer.find("secret"), std::string::npos);
  }
}

TEST(Server, WrongMethod_AllowHeader) {
  ServerInThread server(sample());
  const auto answer = ask(server.port(), "DELETE /echo HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(answer.find("\r\nAllow: GET, POST\r\n"), std::string::npos) << answer;
}

TEST(Server, ChunkedBody_WholeAndOverLimit) {
  ServerInThread server(sample());
  const std::string head = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  auto answer = ask(server.port(), head + "3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\nX-T: 1\r\n\r\n");
  EXPECT_NE(answer.find("POST /echo? abcde"), std::string::npos) << answer;
  answer = ask(server.port(), head + "7d0\r\n" + std::string(2'000, 'x') + "\r\n0\r\n\r\n");
  EXPECT_TRUE(is(answer, 413)) << answer;
  // An absurd size is refused when it is announced, not when that much has come.
  answer = ask(server.port(), head + "3\r\nabc\r\nffffffffffffffff\r\nx");
  EXPECT_TRUE(is(answer, 413)) << answer;
}

TEST(Server, StreamedBody_InPiecesAndKeptAlive) {
  ServerInThread server(sample());
  RawClient client(server.port());
  const std::string big(3'000'000, 'y');
  for (int i = 0; i < 2; ++i) {
    client.send(
        "PUT /count HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: "
        "3000000\r\n\r\n");
    EXPECT_TRUE(is(client.read_until("\r\n\r\n"), 100));
    client.send(big);
    EXPECT_TRUE(is(client.read_until("\r\n\r\n3000000"), 200));
  }
}

TEST(Server, SlowHeader_408) {
  auto options = ServerInThread::quiet();
  options.header_limit = Millis(50);
  ServerInThread server(sample(), options);
  RawClient client(server.port());
  client.send("GET /echo HTTP/1.1\r\nHo");
  EXPECT_TRUE(is(client.read_to_end(), 408));
}

TEST(Server, SlowBody_408AndIdleClosed) {
  auto options = ServerInThread::quiet();
  options.silence_limit = Millis(50);
  ServerInThread server(sample(), options);
  RawClient slow(server.port()), idle(server.port());
  slow.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_TRUE(is(slow.read_to_end(), 408));
  EXPECT_EQ(idle.read_to_end(), "");
}

TEST(Server, TooManyConnections_503) {
  auto options = ServerInThread::quiet();
  options.connections_max = 1;
  ServerInThread server(sample(), options);
  RawClient first(server.port());
  first.send("GET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(is(first.read_until("GET /echo? "), 200));
  RawClient second(server.port());
  EXPECT_TRUE(is(second.read_to_end(), 503));
}

TEST(Server, Events_Chunked) {
  ServerInThread server(sample());
  RawClient client(server.port());
  client.send("GET /events HTTP/1.1\r\nHost: x\r\n\r\nGET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto head = client.read_until("\r\n\r\n");
  EXPECT_NE(head.find("Transfer-Encoding: chunked"), std::string::npos) << head;
  EXPECT_EQ(client.read_until("0\r\n\r\n"),
            "18\r\nid: 1\nevent: n\ndata: x\n\n\r\n18\r\nid: 2\nevent: n\ndata: x\n\n\r\n"
            "18\r\nid: 3\nevent: n\ndata: x\n\n\r\n0\r\n\r\n");
  EXPECT_TRUE(is(client.read_until("GET /echo? "), 200));  // the connection goes on
}

TEST(Server, Http10_StreamEndsWithConnection) {
  ServerInThread server(sample());
  const auto answer = ask(server.port(), "GET /events HTTP/1.0\r\n\r\n");
  EXPECT_EQ(answer.find("chunked"), std::string::npos);
  EXPECT_NE(answer.find("\r\n\r\nid: 1\n"), std::string::npos) << answer;
}

TEST(Server, Upgrade_RawBytesWithLeftover) {
  ServerInThread server(sample());
  const auto answer = ask(server.port(),
                          "POST /shout HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\n"
                          "Upgrade: shout\r\nContent-Length: 0\r\n\r\nearly bytes");
  EXPECT_TRUE(is(answer, 101)) << answer;
  EXPECT_NE(answer.find("\r\n\r\nHEARD early bytes"), std::string::npos) << answer;
}

TEST(Server, Stop_RunningRequestEndsIdleIsClosed) {
  ServerInThread server(sample());
  RawClient idle(server.port()), busy(server.port());
  idle.send("GET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(is(idle.read_until("GET /echo? "), 200));
  busy.send("GET /waits HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(is(busy.read_until("begun"), 200));
  server.begin_stop(Millis(10'000));
  EXPECT_NE(busy.read_to_end().find("stopped\r\n0\r\n\r\n"), std::string::npos);
  EXPECT_EQ(idle.read_to_end(), "");
  server.join();
}

TEST(Server, ClientGoneInTheMiddle_ServerLives) {
  ServerInThread server(sample());
  for (int i = 0; i < 20; ++i) {
    RawClient client(server.port());
    client.send("PUT /count HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nabc");
  }
  EXPECT_TRUE(is(ask(server.port(), "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n"), 200));
}

}  // namespace
}  // namespace autodl::http
