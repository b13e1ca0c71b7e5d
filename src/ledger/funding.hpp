// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What pays for a run, second by second: its funds in order (vouchers, the one that expires soonest
// first; cash last), each for the seconds of the run that end before it expires. Pure.
//
// A run's cost is a position: charge_micro(price, cards, ms), the cumulative total. Funds are
// poured one after the other from the settled position on; a fund stops where it is empty or at the
// position of its limit, whichever comes first. What it has beyond that is of no use to this run.
// Pouring the soonest to expire first reaches furthest, and any prefix of it is the same pouring.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.hpp"
#include "model/money.hpp"

namespace autodl {

struct Fund {
  VoucherId voucher;                     // empty: cash
  std::int64_t held = 0;                 // for this run
  std::int64_t free = 0;                 // could be held
  std::int64_t limit_ms = kPaidForever;  // of the run's own time: pays for no later second
};

struct RunTerms {
  std::int64_t price_micro = 0;
  std::int64_t cards = 0;
  std::int64_t settled_micro = 0;
};

// The position that the first `amount` of the holds reaches (what is given back is the end of it).
std::int64_t covered_micro(const RunTerms& terms, const std::vector<Fund>& funds,
                           std::int64_t amount);
// The least amount of the holds, from the front, that reaches `goal`; none: all of them do not.
std::int64_t needed_micro(const RunTerms& terms, const std::vector<Fund>& funds, std::int64_t goal);
// What each fund should hold, held and free money taken together, to reach `goal` or as far as it
// goes.
std::vector<std::int64_t> plan_holds(const RunTerms& terms, const std::vector<Fund>& funds,
                                     std::int64_t goal);
// What each fund pays of the cost up to the position `total` <= covered_micro.
std::vector<std::int64_t> plan_charge(const RunTerms& terms, const std::vector<Fund>& funds,
                                      std::int64_t total);

}  // namespace autodl
