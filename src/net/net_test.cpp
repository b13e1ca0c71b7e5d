// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "net/address.hpp"
#include "net/conn.hpp"
#include "net/listener.hpp"
#include "net/splice.hpp"

namespace autodl {
namespace {

TEST(Address, Forms_RoundTrip) {
  for (const char* text : {"127.0.0.1:8480", "[::1]:1", "unix:/tmp/x.sock", "0.0.0.0:65535"}) {
    const auto parsed = parse_address(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(to_string(*parsed), text);
  }
}

TEST(Address, Nonsense_Refused) {
  for (const char* text : {"", "localhost:80", "1.2.3.4", "1.2.3.4:", "1.2.3.4:65536", "1.2.3.4:-1",
                           "1.2.3.4:8x", "[::1:80", "unix:", "256.0.0.1:1"})
    EXPECT_FALSE(parse_address(text).ok()) << text;
  EXPECT_FALSE(parse_address("unix:" + std::string(200, 'x')).ok());
}

TEST(Address, Loopback_Known) {
  EXPECT_TRUE(is_loopback(*parse_address("127.8.0.1:1")));
  EXPECT_TRUE(is_loopback(*parse_address("[::1]:1")));
  EXPECT_FALSE(is_loopback(*parse_address("10.0.0.1:1")));
  EXPECT_FALSE(is_loopback(*parse_address("[::]:1")));
}

struct Pair {
  std::unique_ptr<Conn> one, other;
};

Task<Pair> make_pair_of_conns() {
  const auto executor = co_await boost::asio::this_coro::executor;
  int fds[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  auto one = adopt_conn(executor, UniqueFd(fds[0]), "one");
  auto other = adopt_conn(executor, UniqueFd(fds[1]), "other");
  Pair pair;
  pair.one = std::move(one).value();
  pair.other = std::move(other).value();
  co_return pair;
}

Task<std::string> read_to_end(Conn* conn) {
  std::string text;
  std::vector<char> buffer(1024);
  while (true) {
    const auto got = co_await conn->read_some(buffer);
    if (!got.ok()) co_return text + "!" + got.error().code();
    if (*got == 0) co_return text;
    text.append(buffer.data(), *got);
  }
}

Task<void> send_and_end(Conn* conn, std::string text) {
  const auto sent = co_await conn->write_all(text, {});
  EXPECT_TRUE(sent.ok());
  conn->shutdown_write();
}

Task<void> read_into(Conn* conn, std::string* text) {
  *text = co_await read_to_end(conn);
}

Task<void> big_transfer() {
  const std::string big(3'000'000, 'x');  // more than any socket's buffer: the writer must wait
  const auto pair = co_await make_pair_of_conns();
  std::string got;
  co_await all_of(send_and_end(pair.one.get(), big), read_into(pair.other.get(), &got));
  EXPECT_EQ(got, big);
}

TEST(Conn, BigWrite_ArrivesWhole) {
  run_task(big_transfer());
}

Task<void> deadline() {
  const auto pair = co_await make_pair_of_conns();
  pair.one->expires_after(Millis(10'000));
  pair.one->expires_after(Millis(20));  // an earlier one counts
  const auto text = co_await read_to_end(pair.one.get());
  EXPECT_EQ(text, "!timed_out");
  pair.one->expires_after(Millis(10'000));  // set anew: usable again
  const auto sent = co_await pair.other->write_all("a");
  EXPECT_TRUE(sent.ok());
  pair.other->shutdown_write();
  const auto after = co_await read_to_end(pair.one.get());
  EXPECT_EQ(after, "a");
}

TEST(Conn, Deadline_EndsWaitAndCanBeSetAnew) {
  run_task(deadline());
}

Task<void> close_it(Conn* conn) {
  conn->close();
  co_return;
}

Task<void> closing() {
  const auto pair = co_await make_pair_of_conns();
  std::string text;
  co_await all_of(read_into(pair.one.get(), &text), close_it(pair.one.get()));
  EXPECT_EQ(text, "!closed");
  const auto there = co_await read_to_end(pair.other.get());
  EXPECT_EQ(there, "");
  const auto sent = co_await pair.other->write_all("x");
  EXPECT_FALSE(sent.ok());  // the peer is gone: an error, no SIGPIPE
}

TEST(Conn, Close_EndsReaderAndTellsPeer) {
  run_task(closing());
}

TEST(Conn, DescriptorThatIsNoSocket_Refused) {
  boost::asio::io_context loop;
  EXPECT_FALSE(adopt_conn(loop.get_executor(), UniqueFd(::dup(0)), "x").ok());
}

Task<void> dial_and_talk(std::uint16_t port, std::string* answer) {
  const auto conn = co_await connect_to("127.0.0.1:" + std::to_string(port), Millis(5'000));
  EXPECT_TRUE(conn.ok());
  co_await send_and_end(conn.value().get(), "hello");
  *answer = co_await read_to_end(conn.value().get());
}

// Accepts one connection and relays it to an echo at the other end of a pair.
Task<void> serve_through_splice(Listener* listener) {
  auto accepted = co_await listener->accept();
  EXPECT_TRUE(accepted.ok());
  const auto pair = co_await make_pair_of_conns();
  auto echo = [](Conn* conn) -> Task<void> {
    const auto text = co_await read_to_end(conn);
    co_await send_and_end(conn, "echo " + text);
  };
  co_await all_of(splice_both(*accepted.value(), *pair.one), echo(pair.other.get()));
}

Task<void> through_listener() {
  const auto executor = co_await boost::asio::this_coro::executor;
  auto listener = make_listener(executor, "127.0.0.1:0");
  EXPECT_TRUE(listener.ok());
  std::string answer;
  co_await all_of(serve_through_splice(listener.value().get()),
                  dial_and_talk(listener.value()->port(), &answer));
  EXPECT_EQ(answer, "echo hello");  // the half-close went through and the way back stayed open
  const auto port = listener.value()->port();
  listener.value()->close();
  const auto refused = co_await connect_to("127.0.0.1:" + std::to_string(port), Millis(5'000));
  EXPECT_FALSE(refused.ok());
}

TEST(Splice, HalfClose_IsPassedOn) {
  run_task(through_listener());
}

}  // namespace
}  // namespace autodl
