// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Server-sent events: the text of one event, and a reader that takes bytes as they come.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace autodl::http {

struct SseEvent {
  std::string id;     // of the last "id:" seen, as the standard says
  std::string event;  // "message" where none was given
  std::string data;
};

// Line breaks in data become several "data:" lines; id and event are cut at a line break.
std::string format_sse(std::string_view id, std::string_view event, std::string_view data);
inline constexpr std::string_view kSseHeartbeat = ": still here\n\n";

class SseReader {
 public:
  static constexpr std::size_t kEventBytesMax = 4 << 20;

  void put(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole event, nothing yet, or kInvalid where one is longer than the maximum.
  Result<std::optional<SseEvent>> next();

 private:
  void take_line(std::string_view line);

  std::string buffer_;
  std::string last_id_;
  SseEvent building_;
  bool has_data_ = false;
};

}  // namespace autodl::http
