// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "http/sse.hpp"

#include <fmt/format.h>

#include <utility>

namespace autodl::http {
namespace {

std::string_view first_line(std::string_view text) {
  return text.substr(0, text.find_first_of("\r\n"));
}

}  // namespace

std::string format_sse(std::string_view id, std::string_view event, std::string_view data) {
  std::string text;
  text.reserve(id.size() + event.size() + data.size() + 32);
  if (!id.empty()) text.append("id: ").append(first_line(id)).append("\n");
  if (!event.empty()) text.append("event: ").append(first_line(event)).append("\n");
  while (true) {
    const auto end = data.find_first_of("\r\n");
    text.append("data: ").append(data.substr(0, end)).append("\n");
    if (end == std::string_view::npos) break;
    const bool pair = data.substr(end, 2) == "\r\n";
    data.remove_prefix(end + (pair ? 2 : 1));
  }
  text += '\n';
  return text;
}

void SseReader::take_line(std::string_view line) {
  if (line.empty() || line.front() == ':') return;
  const auto colon = line.find(':');
  const auto field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  if (field == "id") {
    last_id_ = std::string(value);
  } else if (field == "event") {
    building_.event = std::string(value);
  } else if (field == "data") {
    if (has_data_) building_.data += '\n';
    building_.data += value;
    has_data_ = true;
  }
}

Result<std::optional<SseEvent>> SseReader::next() {
  std::size_t from = 0;
  while (true) {
    const auto end = buffer_.find('\n', from);
    if (end == std::string::npos) break;
    std::string_view line(buffer_.data() + from, end - from);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    from = end + 1;
    if (!line.empty()) {
      take_line(line);
      continue;
    }
    if (!has_data_) {  // as the standard says: no event, and its type is forgotten
      building_ = SseEvent{};
      continue;
    }
    building_.id = last_id_;
    if (building_.event.empty()) building_.event = "message";
    std::optional<SseEvent> event = std::exchange(building_, SseEvent{});
    has_data_ = false;
    buffer_.erase(0, from);
    return event;
  }
  buffer_.erase(0, from);
  if (buffer_.size() + building_.data.size() > kEventBytesMax)
    return Error(ErrorKind::kInvalid, "event_too_long",
                 fmt::format("an event is longer than {} bytes", kEventBytesMax));
  return std::optional<SseEvent>{};
}

}  // namespace autodl::http
