// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "agent/resources.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace autodl {

namespace {
constexpr std::int64_t kMemoryMin = std::int64_t{512} << 20;
}

std::int64_t ResourceSplit::memory_for(std::size_t run_cards) const {
  const auto usable = std::max(memory_bytes - reserve_bytes, kMemoryMin);
  const auto share = usable / std::max(cards, 1);
  const auto bytes = run_cards == 0 ? (cards > 0 ? share / 2 : usable / 4)
                                    : share * static_cast<std::int64_t>(run_cards);
  return std::clamp(bytes, std::min(kMemoryMin, usable), usable);
}

std::string ResourceSplit::cpuset_for(int first_place, int count) const {
  if (share_processors || count <= 0 || cards <= 0 || processors <= 1) return {};
  const int from = first_place * processors / cards;
  const int to = std::max((first_place + count) * processors / cards, from + 1);
  if (from == 0 && to >= processors) return {};
  return from + 1 == to ? fmt::format("{}", from) : fmt::format("{}-{}", from, to - 1);
}

std::string print_gib(std::int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

}  // namespace autodl
