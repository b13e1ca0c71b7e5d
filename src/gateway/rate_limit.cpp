// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "gateway/rate_limit.hpp"

#include <algorithm>

namespace autodl {

double RateLimiter::tokens_now(const Bucket& bucket, SteadyTime now) const {
  const double seconds = std::chrono::duration<double>(now - bucket.at).count();
  return std::min(limits_.burst, bucket.tokens + std::max(0.0, seconds) * limits_.per_second);
}

void RateLimiter::forget_full(SteadyTime now) {
  std::erase_if(buckets_,
                [&](const auto& entry) { return tokens_now(entry.second, now) >= limits_.burst; });
}

bool RateLimiter::admit(const std::string& address) {
  const auto now = clock_.steady_now();
  auto found = buckets_.find(address);
  if (found == buckets_.end()) {
    if (buckets_.size() >= limits_.addresses_max) forget_full(now);
    if (buckets_.size() >= limits_.addresses_max) return false;
    found = buckets_.emplace(address, Bucket{limits_.burst, now}).first;
  }
  auto& bucket = found->second;
  bucket = {tokens_now(bucket, now), now};
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  return true;
}

}  // namespace autodl
