// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Money arithmetic in integer micro-units. Every division names its rounding; no floating point.
#pragma once

#include <cstdint>

namespace autodl {

inline constexpr std::int64_t kMicroMax = 1'000'000'000'000'000'000;  // 10^12 whole units

// a * b * c / d, rounded half to even; a, b, c >= 0, d > 0. Saturates at kMicroMax.
std::int64_t mul_div_half_even(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d);

// What a run costs that has been running for `ms`: price x cards x floor(ms / 1000) / 3600,
// half to even on the cumulative total. cards 0 (a run without a card) counts as one.
std::int64_t charge_micro(std::int64_t price_micro, std::int64_t cards, std::int64_t ms);

// How many milliseconds `micro` pays for: the most for which charge_micro stays <= micro, in whole
// seconds; a free run is paid for ever (kPaidForever).
inline constexpr std::int64_t kPaidForever = std::int64_t{100} * 366 * 86'400 * 1'000;
std::int64_t paid_ms(std::int64_t price_micro, std::int64_t cards, std::int64_t micro);

// What a disk costs: price per GB-day (GB = 2^30 bytes), cumulative, half to even.
std::int64_t storage_micro(std::int64_t price_per_gb_day, std::int64_t bytes, std::int64_t ms);

}  // namespace autodl
