// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The gateway's endpoint table, and the line that clients of an instance that doesn't run read.
#include "gateway/endpoints.hpp"

#include <algorithm>

#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace autodl;
  const auto text = fuzz::text_of(data, size);
  fuzz::round_trip(parse_endpoints, print_endpoints, text, "endpoint table");
  const auto table = parse_endpoints(text);
  if (!table.ok()) return 0;
  for (const auto& endpoint : table.value()) {
    fuzz::require(endpoint.port != 0 && is_ulid(endpoint.instance.str()), "a row is whole");
    const auto told = not_running_text(endpoint);
    fuzz::require(told.ends_with("\r\n"), "the text is a line");
    fuzz::require(std::none_of(told.begin(), told.end() - 2,
                               [](unsigned char c) { return c < 0x20 || c == 0x7f; }),
                  "the text has no control characters");
  }
  return 0;
}
