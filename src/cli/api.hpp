// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Api: calls of the REST API, signed, with JSON in and out. Problems become Errors whose message
// is the server's text; GETs are repeated for a minute where the server is away.
#pragma once

#include <boost/json.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/result.hpp"
#include "cli/config.hpp"
#include "http/client.hpp"
#include "http/sse.hpp"

namespace autodl::cli {

namespace json = boost::json;

class Api {
 public:
  static Result<Api> make(Credentials credentials, const Clock& clock, Random& random);

  Result<json::value> get(const std::string& target);
  // Sends an idempotency key of its own, and repeats the call with it where the server was away.
  Result<json::value> post(const std::string& target, const json::value& body);
  Status remove(const std::string& target);
  Result<json::value> put_part(const std::string& target, std::string_view bytes);

  struct Content {
    std::string bytes;
    http::Headers headers;
  };
  Result<Content> get_bytes(const std::string& target, const std::string& if_match);

  // Server-sent events until on_event returns false or the stream ends; opened again from the
  // last id where the connection is lost.
  Status events(const std::string& target,
                const std::function<bool(const http::SseEvent&)>& on_event);
  Result<http::Upgraded> upgrade(const std::string& target, std::string_view protocol);

  const std::string& endpoint() const { return credentials_.endpoint; }

 private:
  Api(Credentials credentials, http::Client client, const Clock& clock, Random& random)
      : credentials_(std::move(credentials)),
        client_(std::move(client)),
        clock_(&clock),
        random_(&random) {}

  void sign(http::ClientRequest& request, bool unsigned_payload, const std::string& key);
  Result<http::Response> send(http::ClientRequest request, bool unsigned_payload,
                              const std::string& key);

  Credentials credentials_;
  bool reached_ = false;
  http::Client client_;
  const Clock* clock_;
  Random* random_;
  std::int64_t skew_s_ = 0;  // the server's clock minus ours, learnt from a clock_skew problem
};

// The Error of a problem document; keeps remedy, request id and near matches in the text.
Error problem_error(const http::Response& response);

}  // namespace autodl::cli
