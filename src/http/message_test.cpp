// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "http/message.hpp"

#include <gtest/gtest.h>

#include "http/problem.hpp"
#include "http/sse.hpp"
#include "http/url.hpp"

namespace autodl::http {
namespace {

TEST(Headers, Names_IgnoreCase) {
  Headers headers{{"Content-Type", "a"}, {"X-A", "1"}};
  EXPECT_EQ(headers.get("content-type"), "a");
  headers.set("x-a", "2");
  EXPECT_EQ(headers.get("X-A"), "2");
  EXPECT_EQ(headers.entries().size(), 2u);
  EXPECT_FALSE(headers.has("Host"));
}

TEST(HasToken, Lists) {
  EXPECT_TRUE(has_token("keep-alive, Upgrade", "upgrade"));
  EXPECT_FALSE(has_token("keep-alive, Upgraded", "upgrade"));
  EXPECT_FALSE(has_token("", "upgrade"));
}

TEST(Percent, Codes) {
  EXPECT_EQ(percent_encode("a/训 b"), "a%2F%E8%AE%AD%20b");
  EXPECT_EQ(percent_decode("a%2F%E8%AE%AD%20b+"), "a/训 b+");
  for (const char* wrong : {"%", "%1", "%zz", "%00", "a%2"})
    EXPECT_FALSE(percent_decode(wrong)) << wrong;
}

TEST(Query, Pairs) {
  const auto query = Query::parse("a=1&b=%20x&c&d=");
  ASSERT_TRUE(query.ok());
  EXPECT_EQ(query->get("a"), "1");
  EXPECT_EQ(query->get("b"), " x");
  EXPECT_EQ(query->get("c"), "");
  EXPECT_EQ(query->get("d"), "");
  EXPECT_FALSE(query->get("e"));
  EXPECT_TRUE(query->only({"a", "b", "c", "d"}).ok());
  EXPECT_EQ(query->only({"a", "b", "d"}).error().code(), "unknown_parameter");
  EXPECT_FALSE(Query::parse("a=1&a=2").ok());
  EXPECT_FALSE(Query::parse("a=%f").ok());
}

TEST(Url, Forms) {
  const auto url = parse_url("http://[::1]:80/x/");
  ASSERT_TRUE(url.ok());
  EXPECT_EQ(url->host, "::1");
  EXPECT_EQ(url->port, 80);
  EXPECT_EQ(url->path, "/x");
  EXPECT_EQ(parse_url("https://a.example")->port, 443);
  for (const char* wrong : {"", "a", "ftp://a", "http://", "http://a:", "http://a:99999",
                            "http://a:0", "http://u@a", "http://a/x?y", "http://a\r\nb"})
    EXPECT_FALSE(parse_url(wrong).ok()) << wrong;
}

TEST(Sse, WriteAndReadInPieces_SameEvents) {
  const std::string text = format_sse("7", "log", "a\nb\r\nc") + std::string(kSseHeartbeat) +
                           format_sse("8\nevent: evil", "x", "");
  SseReader reader;
  std::vector<SseEvent> events;
  for (const char c : text) {
    reader.put({&c, 1});
    auto event = reader.next();
    ASSERT_TRUE(event.ok());
    if (*event) events.push_back(**event);
  }
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].id, "7");
  EXPECT_EQ(events[0].event, "log");
  EXPECT_EQ(events[0].data, "a\nb\nc");
  EXPECT_EQ(events[1].id, "8");
  EXPECT_EQ(events[1].event, "x");
}

TEST(Sse, EmptyEvent_ItsTypeIsForgotten) {
  SseReader reader;
  reader.put("event: log\n\ndata: x\n\n");
  const auto event = reader.next();
  ASSERT_TRUE(event.ok() && event.value());
  EXPECT_EQ(event.value()->event, "message");
}

TEST(Sse, EndlessEvent_Refused) {
  SseReader reader;
  reader.put(std::string(SseReader::kEventBytesMax + 10, 'x'));
  EXPECT_FALSE(reader.next().ok());
}

TEST(Problem, InternalError_TextStaysInside) {
  const auto response =
      problem_response(Error(ErrorKind::kInternal, "db", "secret path /x"), "req_1");
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(response.body.find("secret"), std::string::npos);
  EXPECT_NE(response.body.find("req_1"), std::string::npos);
}

TEST(Problem, StrangersBytes_AreValidUtf8) {
  const auto response =
      problem_response(Error(ErrorKind::kNotFound, "no_such_path", "nothing at /a\xb9"), "req_1");
  EXPECT_NE(response.body.find("nothing at /a\xEF\xBF\xBD"), std::string::npos) << response.body;
}

TEST(Problem, Error_AllMembers) {
  boost::json::object extra;
  extra["candidates"] = boost::json::array{"RTX 3090"};
  const auto response =
      problem_response(Error(ErrorKind::kInvalid, "unknown_card", "no card 'x'", "ask for another"),
                       "req_1", 0, std::move(extra));
  EXPECT_EQ(response.body,
            R"({"type":"urn:autodl:problem:unknown_card","title":"Unknown card","status":422,)"
            R"("code":"unknown_card","detail":"no card 'x'","remedy":"ask for another",)"
            R"("request_id":"req_1","candidates":["RTX 3090"]})");
}

}  // namespace
}  // namespace autodl::http
