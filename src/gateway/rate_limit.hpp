// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// RateLimiter: a token bucket per client address. Bounded: where too many addresses are known,
// those that are full again are forgotten first, and if none is, a new address is refused.
#pragma once

#include <map>
#include <string>

#include "base/clock.hpp"

namespace autodl {

class RateLimiter {
 public:
  struct Limits {
    double burst = 60;       // connections at once
    double per_second = 10;  // and then
    std::size_t addresses_max = 65'536;
  };

  RateLimiter(Limits limits, const Clock& clock) : limits_(limits), clock_(clock) {}

  // Whether one more connection of this address is let in now; takes a token if so.
  bool admit(const std::string& address);
  std::size_t known() const { return buckets_.size(); }

 private:
  struct Bucket {
    double tokens;
    SteadyTime at;
  };
  double tokens_now(const Bucket& bucket, SteadyTime now) const;
  void forget_full(SteadyTime now);

  const Limits limits_;
  const Clock& clock_;
  std::map<std::string, Bucket> buckets_;
};

}  // namespace autodl
