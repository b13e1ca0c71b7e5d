// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"

namespace autodl {
namespace {

TEST(Ulid_SameMillisecond, StaysSortedAndUnique) {
  ManualClock clock;
  SeededRandom random(7);
  UlidGenerator ids(clock, random);
  std::string last;
  for (int i = 0; i < 10'000; ++i) {
    const auto id = ids.next();
    ASSERT_TRUE(is_ulid(id)) << id;
    ASSERT_LT(last, id);
    last = id;
  }
}

TEST(Ulid_ClockSetBack, StaysSorted) {
  ManualClock clock;
  SeededRandom random(7);
  UlidGenerator ids(clock, random);
  const auto first = ids.next();
  clock.jump_utc(std::chrono::hours{-1});
  EXPECT_LT(first, ids.next());
}

TEST(Ulid_Foreign, IsRefused) {
  EXPECT_FALSE(is_ulid(""));
  EXPECT_FALSE(is_ulid("01ARZ3NDEKTSV4RRFFQ69G5FA"));
  EXPECT_FALSE(is_ulid("01ARZ3NDEKTSV4RRFFQ69G5FAI"));  // I is no digit
  EXPECT_FALSE(is_ulid("../../../../etc/passwd/xxx"));
}

TEST(Rfc3339_RoundTrip, KeepsMicroseconds) {
  const UtcTime time{std::chrono::microseconds{1'796'140'692'123'456}};
  EXPECT_EQ(to_rfc3339(time), "2026-12-01T15:58:12.123456Z");
  EXPECT_EQ(parse_rfc3339(to_rfc3339(time)), time);
  EXPECT_EQ(parse_rfc3339("2026-12-01T15:58:12Z"), UtcTime{std::chrono::seconds{1'796'140'692}});
}

TEST(Rfc3339_Malformed, IsRefused) {
  for (const char* text :
       {"", "2026-12-01", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-12-01T25:00:00Z",
        "2026-12-01T15:58:12+08:00", "2026-12-01T15:58:12.Zjunk", "-026-12-01T15:58:12Z"})
    EXPECT_FALSE(parse_rfc3339(text).has_value()) << text;
}

Result<int> half(int value) {
  if (value % 2 != 0) return Error(ErrorKind::kInvalid, "odd", "value is odd");
  return value / 2;
}

Result<int> quarter(int value) {
  ADL_TRY(first, half(value));
  ADL_TRY(second, half(first));
  return second;
}

TEST(Result_Try, ReturnsTheFirstError) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).error().code(), "odd");
  EXPECT_EQ(quarter(6).error().context("halve").message(), "halve: value is odd");
}

TEST(Random_Below, StaysInRange) {
  SeededRandom random(1);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.below(5));
  EXPECT_EQ(seen.size(), 5U);
  EXPECT_EQ(*seen.rbegin(), 4U);
}

}  // namespace
}  // namespace autodl
