// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// A node's journal, one record a line: records read as they were printed, and the short list of
// facts that a journal is rewritten with gives the same state.
#include "agent/facts.hpp"

#include <algorithm>

#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace autodl;
  auto text = fuzz::text_of(data, size);
  InstanceFacts state;
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto fact = decode_fact(line);
    if (!fact.ok()) continue;
    const auto printed = encode_fact(fact.value());
    const auto again = decode_fact(printed);
    fuzz::require(again.ok() && encode_fact(again.value()) == printed, "a fact reads as the same");
    // The agent tells nothing more of a run that it has released.
    if (state.run && state.run->id == again.value().run && state.run->released) continue;
    apply(state, again.value());
  }
  InstanceFacts rewritten;
  for (const auto& fact : to_facts(state)) {
    const auto read = decode_fact(encode_fact(fact));
    fuzz::require(read.ok() && read.value() == fact, "a fact of a rewrite reads as the same");
    apply(rewritten, read.value());
  }
  fuzz::require(rewritten == state, "a rewritten journal tells the same");
  return 0;
}
