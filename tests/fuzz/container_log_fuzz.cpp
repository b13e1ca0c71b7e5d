// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// A container's log, whose text the tenant writes: every entry is UTF-8, and a reader that goes on
// behind an entry sees the entries after it.
#include "control/api/container_log.hpp"

#include <string>

#include "base/clock.hpp"
#include "fuzz.hpp"

namespace {

using namespace autodl;

void check(std::string_view bytes, bool at_end) {
  constexpr std::int64_t kOffset = 1'000;
  const auto chunk = parse_container_log(bytes, kOffset, at_end);
  fuzz::require(chunk.consumed <= bytes.size(), "no more is consumed than there is");
  fuzz::require(!at_end || chunk.consumed == bytes.size(), "at the end all is consumed");
  fuzz::require(chunk.entries.size() == chunk.next_offsets.size(), "an offset an entry");
  std::int64_t last = kOffset;
  for (std::size_t i = 0; i < chunk.entries.size(); ++i) {
    const auto& entry = chunk.entries[i];
    fuzz::require(to_valid_utf8(entry.text) == entry.text, "a text is UTF-8");
    fuzz::require(to_valid_utf8(entry.time) == entry.time, "a time is UTF-8");
    fuzz::require(chunk.next_offsets[i] > last, "offsets go forward");
    last = chunk.next_offsets[i];
  }
  fuzz::require(
      chunk.entries.empty() || last == kOffset + static_cast<std::int64_t>(chunk.consumed),
      "the last offset is behind what is consumed");
  if (chunk.entries.size() < 2) return;
  const std::size_t from = chunk.entries.size() / 2;
  const auto skipped = static_cast<std::size_t>(chunk.next_offsets[from - 1] - kOffset);
  const auto rest =
      parse_container_log(bytes.substr(skipped), chunk.next_offsets[from - 1], at_end);
  fuzz::require(rest.entries.size() == chunk.entries.size() - from, "going on gives the rest");
  for (std::size_t i = 0; i < rest.entries.size(); ++i)
    fuzz::require(rest.entries[i].time == chunk.entries[from + i].time &&
                      rest.entries[i].stream == chunk.entries[from + i].stream &&
                      rest.next_offsets[i] == chunk.next_offsets[from + i],
                  "going on gives the same entries");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz::text_of(data, size);
  check(text, false);
  check(text, true);
  if (const auto time = parse_rfc3339(text)) {
    const auto again = parse_rfc3339(to_rfc3339(*time));
    fuzz::require(again == time, "a time prints to itself");
  }
  return 0;
}
