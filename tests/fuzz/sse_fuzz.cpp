// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Server-sent events: any pieces give the same events, and what is written reads as the same. The
// first byte chooses the pieces' lengths.
#include "http/sse.hpp"

#include <algorithm>
#include <string>

#include "fuzz.hpp"

namespace {

using namespace autodl;

std::string read_in_pieces(std::string_view bytes, std::size_t length) {
  http::SseReader reader;
  std::string seen;
  while (!bytes.empty()) {
    const auto now = std::min(length, bytes.size());
    reader.put(bytes.substr(0, now));
    bytes.remove_prefix(now);
    for (;;) {
      const auto next = reader.next();
      fuzz::require(next.ok(), "a short stream is readable");
      if (!next.value()) break;
      const auto& event = *next.value();
      fuzz::require(!event.event.empty(), "an event has a type");
      seen += event.id + '\n' + event.event + '\n' + event.data + "\n\n";
    }
  }
  return seen;
}

// data as it comes back: each kind of line break is one '\n'.
std::string plain_breaks(std::string_view data) {
  std::string out;
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (data[i] == '\r' && i + 1 < data.size() && data[i + 1] == '\n') continue;
    out += data[i] == '\r' ? '\n' : data[i];
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto text = fuzz::text_of(data + 1, size - 1);
  const auto whole = read_in_pieces(text, text.size());
  fuzz::require(whole == read_in_pieces(text, 1), "single bytes give the same events");
  fuzz::require(whole == read_in_pieces(text, 1 + std::size_t{data[0]} % 16),
                "pieces give the same events");

  http::SseReader reader;
  reader.put(text);  // whatever came before …
  reader.put("\n\n");
  for (;;) {
    const auto next = reader.next();
    if (!next.ok() || !next.value()) break;
  }
  reader.put(http::format_sse("7", "", text));  // … the next event is what was written
  const auto event = reader.next();
  fuzz::require(event.ok() && event.value(), "a written event comes");
  fuzz::require(event.value()->id == "7" && event.value()->event == "message",
                "an event has its own id and type");
  fuzz::require(event.value()->data == plain_breaks(text), "the data is what was written");
  return 0;
}
