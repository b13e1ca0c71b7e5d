// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "control/api/container_log.hpp"

#include <fmt/format.h>

#include <charconv>

#include "base/clock.hpp"
#include "base/utf8.hpp"

namespace autodl {
namespace {

// A record of conmon is at most some 8 KiB; what is longer than this is cut into several.
constexpr std::size_t kRecordBytesMax = 64 * 1024;

// Bytes of a sequence that is cut off at the end of the text.
std::size_t cut_off_bytes(std::string_view text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto c = static_cast<unsigned char>(text[text.size() - back]);
    if ((c & 0xC0) == 0x80) continue;
    return c >= 0xC2 && utf8_sequence(text.substr(text.size() - back)) == -1 ? back : 0;
  }
  return 0;
}

// "2026-12-01T16:00:00.123456789+08:00" in UTC with microseconds; as it is where it is no time.
std::string utc_text(std::string_view time) {
  const std::size_t zone = time.size() - 6;
  const auto parsed = parse_rfc3339(time);
  if (parsed) return to_rfc3339(*parsed);
  if (time.size() < 25 || (time[zone] != '+' && time[zone] != '-') || time[zone + 3] != ':')
    return to_valid_utf8(time);
  int hours = 0, minutes = 0;
  std::from_chars(time.data() + zone + 1, time.data() + zone + 3, hours);
  std::from_chars(time.data() + zone + 4, time.data() + zone + 6, minutes);
  auto plain = std::string(time.substr(0, std::min<std::size_t>(zone, 26)));
  const auto local = parse_rfc3339(plain + "Z");
  if (!local) return to_valid_utf8(time);
  const auto ahead = std::chrono::hours(hours) + std::chrono::minutes(minutes);
  return to_rfc3339(time[zone] == '+' ? *local - ahead : *local + ahead);
}

// "TIME STREAM TAG TEXT" without its line break; false where it is something else.
bool parse_record(std::string_view record, api::LogEntry& entry) {
  const auto time_end = record.find(' ');
  if (time_end == std::string_view::npos || time_end < 20) return false;
  const auto rest = record.substr(time_end + 1);
  const bool out = rest.substr(0, 7) == "stdout ";
  if (!out && rest.substr(0, 7) != "stderr ") return false;
  const auto tagged = rest.substr(7);
  if (tagged.empty() || (tagged[0] != 'F' && tagged[0] != 'P')) return false;
  if (tagged.size() > 1 && tagged[1] != ' ') return false;
  entry.time = utc_text(record.substr(0, time_end));
  entry.stream = out ? "stdout" : "stderr";
  entry.partial = tagged[0] == 'P';
  entry.text = tagged.size() > 2 ? std::string(tagged.substr(2)) : std::string();
  return true;
}

void add_hole(LogChunk& chunk, std::size_t bytes) {
  api::LogEntry entry;
  entry.stream = "platform";
  entry.text = fmt::format("({} bytes of output were left out here)", bytes);
  chunk.entries.push_back(std::move(entry));
}

}  // namespace

LogChunk parse_container_log(std::string_view bytes, std::int64_t offset, bool at_end) {
  LogChunk chunk;
  std::string carried;  // a character that a partial record cut in two
  std::string carried_stream;
  const auto position = [&] { return offset + static_cast<std::int64_t>(chunk.consumed); };
  while (chunk.consumed < bytes.size()) {
    const auto rest = bytes.substr(chunk.consumed);
    if (rest[0] == '\0') {  // a hole, and what is left of the record that it cut
      const auto data = rest.find_first_not_of('\0');
      const auto line_end = data == std::string_view::npos ? data : rest.find('\n', data);
      if (line_end == std::string_view::npos && !at_end && rest.size() < kRecordBytesMax) break;
      const auto length = line_end == std::string_view::npos ? rest.size() : line_end + 1;
      add_hole(chunk, length);
      chunk.consumed += length;
      chunk.next_offsets.push_back(position());
      continue;
    }
    auto line_end = rest.find('\n');
    if (line_end == std::string_view::npos && !at_end && rest.size() < kRecordBytesMax) break;
    const auto length =
        std::min(line_end == std::string_view::npos ? rest.size() : line_end + 1, kRecordBytesMax);
    auto record = rest.substr(0, length);
    chunk.consumed += length;
    if (record.back() == '\n') record.remove_suffix(1);
    api::LogEntry entry;
    if (!parse_record(record, entry)) {
      entry.stream = "stdout";
      entry.text = std::string(record);
    }
    if (!carried.empty() && entry.stream == carried_stream)
      entry.text.insert(0, std::exchange(carried, {}));
    if (entry.partial && carried.empty() && chunk.consumed < bytes.size()) {
      carried = entry.text.substr(entry.text.size() - cut_off_bytes(entry.text));
      carried_stream = entry.stream;
      entry.text.resize(entry.text.size() - carried.size());
    }
    entry.text = to_valid_utf8(entry.text);
    chunk.entries.push_back(std::move(entry));
    chunk.next_offsets.push_back(position());
  }
  if (!carried.empty())  // its other half has not come yet
    for (auto entry = chunk.entries.rbegin(); entry != chunk.entries.rend(); ++entry)
      if (entry->stream == carried_stream) {
        entry->text += to_valid_utf8(carried);
        break;
      }
  return chunk;
}

}  // namespace autodl
