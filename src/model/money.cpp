// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "model/money.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace autodl {
namespace {

__extension__ using Wide = unsigned __int128;

Wide wide(std::int64_t value) {
  ADL_ASSERT(value >= 0);
  return static_cast<Wide>(value);
}

std::int64_t divide_half_even(Wide numerator, Wide denominator) {
  ADL_ASSERT(denominator > 0);
  Wide quotient = numerator / denominator;
  const Wide rest = numerator % denominator;
  const Wide twice = rest * 2;
  if (twice > denominator || (twice == denominator && quotient % 2 == 1)) quotient += 1;
  return static_cast<std::int64_t>(std::min(quotient, wide(kMicroMax)));
}

// a * b, where it would not leave room for one more factor: saturated.
Wide product(Wide a, Wide b) {
  const Wide limit = wide(kMicroMax) * wide(kMicroMax);  // 10^36 < 2^127
  if (a != 0 && b > limit / a) return limit;
  return a * b;
}

}  // namespace

std::int64_t mul_div_half_even(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  return divide_half_even(product(product(wide(a), wide(b)), wide(c)), wide(d));
}

std::int64_t charge_micro(std::int64_t price_micro, std::int64_t cards, std::int64_t ms) {
  return mul_div_half_even(price_micro, std::max<std::int64_t>(cards, 1), ms / 1'000, 3'600);
}

std::int64_t paid_ms(std::int64_t price_micro, std::int64_t cards, std::int64_t micro) {
  const Wide rate = product(wide(price_micro), wide(std::max<std::int64_t>(cards, 1)));
  if (rate == 0) return kPaidForever;
  const Wide seconds = product(wide(micro), 3'600) / rate;
  return static_cast<std::int64_t>(std::min(seconds, wide(kPaidForever / 1'000))) * 1'000;
}

std::int64_t storage_micro(std::int64_t price_per_gb_day, std::int64_t bytes, std::int64_t ms) {
  const Wide day_ms_gb = (Wide{1} << 30) * 86'400'000;
  return divide_half_even(product(product(wide(price_per_gb_day), wide(bytes)), wide(ms)),
                          day_ms_gb);
}

}  // namespace autodl
