// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "ledger/funding.hpp"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <numeric>

namespace autodl {
namespace {

// One micro-unit a second keeps the tables readable: a position is a number of seconds.
constexpr RunTerms kTerms{3'600, 1, 0};

Fund fund(const char* voucher, std::int64_t held, std::int64_t free, std::int64_t limit_s) {
  return {VoucherId(voucher), held, free, limit_s < 0 ? kPaidForever : limit_s * 1'000};
}

TEST(Funding_Covered, Tables) {
  struct Case {
    const char* what;
    std::vector<Fund> funds;
    std::int64_t amount;
    std::int64_t covered;
  };
  const Case cases[] = {
      {"nothing", {}, 0, 0},
      {"cash", {fund("", 50, 0, -1)}, 50, 50},
      {"of cash, a part", {fund("", 50, 0, -1)}, 20, 20},
      {"a voucher, then cash", {fund("a", 30, 0, 100), fund("", 50, 0, -1)}, 80, 80},
      {"a voucher that expires, then cash", {fund("a", 30, 0, 10), fund("", 5, 0, -1)}, 35, 15},
      {"an expired one is of no use", {fund("a", 30, 0, 0), fund("", 5, 0, -1)}, 35, 5},
      {"the end is given back: cash", {fund("a", 30, 0, 10), fund("", 5, 0, -1)}, 30, 10},
      {"two vouchers", {fund("a", 30, 0, 10), fund("b", 30, 0, 25)}, 60, 25},
  };
  for (const auto& row : cases) {
    EXPECT_EQ(covered_micro(kTerms, row.funds, row.amount), row.covered) << row.what;
  }
}

TEST(Funding_PlanHolds, VouchersFirst_ThenCash) {
  using Plan = std::vector<std::int64_t>;
  const std::vector<Fund> funds = {fund("a", 0, 30, 10), fund("b", 0, 30, 60),
                                   fund("", 40, 100, -1)};
  EXPECT_EQ(plan_holds(kTerms, funds, 5), (Plan{5, 0, 0}));
  EXPECT_EQ(plan_holds(kTerms, funds, 35), (Plan{10, 25, 0}));
  EXPECT_EQ(plan_holds(kTerms, funds, 100), (Plan{10, 30, 60}));
  EXPECT_EQ(plan_holds(kTerms, funds, kMicroMax), (Plan{10, 30, 140}));
}

TEST(Funding_Needed, LeastAmountFromTheFront) {
  const std::vector<Fund> funds = {fund("a", 30, 0, 10), fund("", 50, 0, -1)};
  EXPECT_EQ(needed_micro(kTerms, funds, 0), 0);
  EXPECT_EQ(needed_micro(kTerms, funds, 8), 8);
  EXPECT_EQ(needed_micro(kTerms, funds, 15), 35);  // the voucher's useless rest stands before cash
  EXPECT_EQ(needed_micro(kTerms, funds, 500), 80);
}

std::vector<Fund> any_funds() {
  std::vector<Fund> out;
  std::int64_t limit = 0;
  const auto count = *rc::gen::inRange(0, 4);
  for (int i = 0; i < count; ++i) {
    limit += *rc::gen::inRange<std::int64_t>(0, 9'000'000);
    out.push_back({VoucherId(std::string(1, static_cast<char>('a' + i))),
                   *rc::gen::inRange<std::int64_t>(0, 9'000'000),
                   *rc::gen::inRange<std::int64_t>(0, 9'000'000), limit});
  }
  out.push_back({{}, *rc::gen::inRange<std::int64_t>(0, 9'000'000), 0, kPaidForever});
  return out;
}

std::int64_t sum(const std::vector<std::int64_t>& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
}

// Charged in any number of pieces, the same funds pay the same.
RC_GTEST_PROP(Funding_Charge, InPieces_PaysAsInOne, ()) {
  auto funds = any_funds();
  RunTerms terms{*rc::gen::inRange<std::int64_t>(1, 9'000'000), *rc::gen::inRange(1, 9), 0};
  std::int64_t held = 0;
  for (const auto& one : funds) held += one.held;
  const std::int64_t total = covered_micro(terms, funds, held);
  const auto whole = plan_charge(terms, funds, total);
  RC_ASSERT(sum(whole) == total);
  std::vector<std::int64_t> pieces(funds.size());
  while (terms.settled_micro < total) {
    const auto next =
        std::min(total, terms.settled_micro + *rc::gen::inRange<std::int64_t>(1, total + 1));
    const auto paid = plan_charge(terms, funds, next);
    RC_ASSERT(sum(paid) == next - terms.settled_micro);
    for (std::size_t i = 0; i < funds.size(); ++i) {
      funds[i].held -= paid[i];
      held -= paid[i];
      pieces[i] += paid[i];
      RC_ASSERT(paid[i] == 0 || terms.settled_micro < charge_micro(terms.price_micro, terms.cards,
                                                                   funds[i].limit_ms));
    }
    terms.settled_micro = next;
    RC_ASSERT(covered_micro(terms, funds, held) == total);
  }
  RC_ASSERT(pieces == whole);
}

// A plan never holds more than there is, and reaches at least as far as the holds did.
RC_GTEST_PROP(Funding_Plan, ReachesAtLeastAsFar, ()) {
  auto funds = any_funds();
  const RunTerms terms{*rc::gen::inRange<std::int64_t>(1, 9'000'000), 1, 0};
  std::int64_t held = 0;
  for (const auto& one : funds) held += one.held;
  const std::int64_t before = covered_micro(terms, funds, held);
  const auto plan =
      plan_holds(terms, funds, before + *rc::gen::inRange<std::int64_t>(0, 9'000'000));
  for (std::size_t i = 0; i < funds.size(); ++i) {
    RC_ASSERT(plan[i] >= 0 && plan[i] <= funds[i].held + funds[i].free);
    funds[i].held = plan[i];
  }
  RC_ASSERT(covered_micro(terms, funds, sum(plan)) >= before);
  RC_ASSERT(covered_micro(terms, funds, sum(plan)) == sum(plan));  // nothing useless is held
  RC_ASSERT(needed_micro(terms, funds, sum(plan)) == sum(plan));
}

}  // namespace
}  // namespace autodl
