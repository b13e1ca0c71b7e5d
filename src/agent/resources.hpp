// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// ResourceSplit: what a run gets of the node's processors and memory: its cards' share. A run
// without a card gets a small share of its own. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace autodl {

struct ResourceSplit {
  int processors = 1;
  std::int64_t memory_bytes = 0;                       // of the machine
  std::int64_t reserve_bytes = std::int64_t{1} << 30;  // the node's own
  int cards = 0;
  bool share_processors = false;  // no processor sets: everyone may use all (simulated cards)

  // 0 cards: half of one card's share, where there are cards; else a quarter of the machine.
  std::int64_t memory_for(std::size_t run_cards) const;
  // By the cards' places among the node's cards, so that two runs never share a processor where
  // there are enough. "0-3"; empty: all.
  std::string cpuset_for(int first_place, int count) const;
};

// "8.0 GiB", as people read sizes.
std::string print_gib(std::int64_t bytes);

}  // namespace autodl
