// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What the NVML child answers: a driver's library that has run wild may have written it. What is
// accepted goes on to control, so it must be printable as JSON.
#include "gpu/nvml_protocol.hpp"

#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace autodl;
  const auto text = fuzz::text_of(data, size);
  fuzz::round_trip(parse_inventory, print_inventory, text, "inventory");
  if (const auto inventory = parse_inventory(text); inventory.ok()) {
    const auto kept = keep_lost_cards(inventory.value().cards, Inventory{});
    fuzz::require(kept.cards.size() <= inventory.value().cards.size(), "no card is made up");
    for (const auto& card : kept.cards)
      fuzz::require(!card.problem.empty(), "a lost card has a problem");
  }
  return 0;
}
