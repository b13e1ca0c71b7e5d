// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Requests for streams into instances (contracts, section 3), as JSON; strict, bounded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace autodl {

inline constexpr std::size_t kStreamMessageBytesMax = 64 << 10;

struct StreamRequest {
  std::int64_t id = 0;  // the reply carries it
  std::string kind;     // "ssh", "exec", "pty", "tcp", "file", "log"
  InstanceId instance;
  RunId run;              // log: whose log; others: empty or the run that is meant
  std::string client;     // "10.0.0.7:50122"; empty: the node itself
  std::string local;      // the endpoint that was dialled
  std::int64_t port = 0;  // tcp
  bool operator==(const StreamRequest&) const = default;
};

struct StreamReply {
  std::int64_t id = 0;
  std::optional<Error> error;  // none: a descriptor comes along
};

std::string to_json(const StreamRequest& request);
std::string to_json(const StreamReply& reply);
Result<StreamRequest> parse_stream_request(std::string_view json);
Result<StreamReply> parse_stream_reply(std::string_view json);
// The id of a request that is otherwise malformed, so that the refusal can be matched; 0: none.
std::int64_t stream_request_id(std::string_view json);

}  // namespace autodl
