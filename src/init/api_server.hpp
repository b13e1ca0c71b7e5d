// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// /run/autodl/api.sock: a few questions answered inside the instance, HTTP/1.1, one request per
// connection, open to every user in it.
//
//   GET /v1/gpus       {"gpus":[…]} as the node sent it; 503 no_samples before the first
//   GET /v1/instance   {"id","name","run","command":bool}
//   POST /v1/shutdown  202; root alone (403)
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "init/event_loop.hpp"

namespace autodl::init {

struct HttpReply {
  int status = 200;
  std::string body;  // JSON
};

// What is asked: method and path, exactly; body ignored. root: the peer is uid 0 in the instance.
using ApiHandler =
    std::function<HttpReply(const std::string& method, const std::string& path, bool root)>;

// The request's method and path, nothing yet (empty method), or kInvalid. Reads the head alone.
struct RequestHead {
  std::string method;
  std::string path;
};
Result<RequestHead> parse_request_head(std::string_view bytes);

class ApiServer {
 public:
  ApiServer(EventLoop& loop, ApiHandler handler);
  ~ApiServer();
  Status listen(const std::string& path);

 private:
  struct Client;
  void accept_one();
  void on_readable(int fd);
  void answer(Client& client, const HttpReply& reply);
  void close(int fd);

  EventLoop& loop_;
  ApiHandler handler_;
  UniqueFd listener_;
  std::map<int, std::unique_ptr<Client>> clients_;
};

}  // namespace autodl::init
