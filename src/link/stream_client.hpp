// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// StreamClient: asks the node for a stream and gets its descriptor. Thread-safe (each call has a
// connection of its own); blocks for at most the deadline: call it from a blocking pool.
//
//   StreamClient streams("/run/autodld/streams.sock");
//   auto fd = streams.open({.kind = "file", .instance = id}, Millis{10'000});
#pragma once

#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "link/stream_messages.hpp"

namespace autodl {

class StreamClient {
 public:
  explicit StreamClient(std::string path) : path_(std::move(path)) {}
  virtual ~StreamClient() = default;

  // A connected, close-on-exec descriptor (log: a regular file, read-only). Errors: the node's own
  // (not_running, no_such_instance, …); kUnavailable node_away, timed_out.
  virtual Result<UniqueFd> open(const StreamRequest& request, Millis deadline);

 private:
  const std::string path_;
};

}  // namespace autodl
