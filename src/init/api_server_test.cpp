// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "init/api_server.hpp"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

namespace autodl::init {
namespace {

TEST(RequestHead, Table) {
  EXPECT_EQ(parse_request_head("GET /v1/gpus HTTP/1.1\r\nHost: x\r\n\r\n").value().path,
            "/v1/gpus");
  EXPECT_EQ(parse_request_head("GET /v1/gpus HTTP/1.1\r\nHost").value().method, "");
  EXPECT_EQ(parse_request_head("POST /x HTTP/1.0\r\n\r\nbody").value().method, "POST");
  for (const char* text : {"\r\n\r\n", "GET\r\n\r\n", "GET /x\r\n\r\n", "GET x HTTP/1.1\r\n\r\n",
                           " /x HTTP/1.1\r\n\r\n", "GET /x SPDY/3\r\n\r\n"})
    EXPECT_FALSE(parse_request_head(text).ok()) << text;
  EXPECT_FALSE(parse_request_head(std::string(9000, 'x')).ok());
}

// One request over a real socket; the server and the client share the loop.
std::string ask(const std::string& request) {
  EventLoop loop;
  const std::string path = testing::TempDir() + "/autodl-init-api.sock";
  ApiServer server(loop, [](const std::string& method, const std::string& what, bool root) {
    return HttpReply{200, method + " " + what + (root ? " root" : "")};
  });
  EXPECT_TRUE(server.listen(path).ok());
  const UniqueFd client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(send(client.get(), request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string answer;
  loop.watch(client.get(), EPOLLIN, [&](std::uint32_t) {
    char buffer[4096];
    const ssize_t got = recv(client.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got <= 0) return loop.stop();
    answer.append(buffer, static_cast<std::size_t>(got));
  });
  loop.run();
  unlink(path.c_str());
  return answer;
}

TEST(ApiServer, AnswersAndCloses) {
  const std::string answer = ask("GET /v1/gpus HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_NE(answer.find(geteuid() == 0 ? "GET /v1/gpus root" : "GET /v1/gpus"), std::string::npos);
}

TEST(ApiServer, NonsenseIsRefused) {
  EXPECT_TRUE(ask("what?\r\n\r\n").starts_with("HTTP/1.1 400"));
}

}  // namespace
}  // namespace autodl::init
