// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Vouchers, prices, budgets, outage credits and notices, on the whole core.
#include <array>

#include "control/core.hpp"
#include "control/testing/core_fixture.hpp"

namespace autodl {
namespace {

using std::chrono::seconds;
using testing_support::CoreTest;
using testing_support::kPrice;

TEST_F(CoreTest, Voucher_PaysBeforeCash_AndNothingAfterItExpires) {
  const auto end = clock.utc_now() + std::chrono::minutes{90};
  ASSERT_TRUE(core->give_voucher(context, "anna", 10 * kPrice, end, "course").ok());
  EXPECT_EQ(core->account(anna)->available_micro, 100'000'000 + 10 * kPrice);
  EXPECT_EQ(core->account(anna)->cash_micro, 100'000'000);
  const auto made = create(request());
  sync();
  ASSERT_EQ(start_code(made), "");
  sync();
  const auto ready = *show(made).run->ready_at;
  const auto paid_s = std::chrono::floor<seconds>(end - ready).count();
  pass(3 * 3'600'000);
  node.exit(made.row.id, 0);
  sync();
  const auto cost = show(made).cost_micro;
  const auto by_voucher = charge_micro(kPrice, 1, paid_s * 1'000);
  EXPECT_EQ(cost, charge_micro(kPrice, 1, show(made).runtime_s * 1'000));
  EXPECT_EQ(core->account(anna)->cash_micro, 100'000'000 - (cost - by_voucher));
  pass(120'000);  // what was left of it is taken back
  EXPECT_EQ(core->account(anna)->available_micro, 100'000'000 - (cost - by_voucher));
  EXPECT_EQ(core->vouchers(anna).at(0).left_micro, 0);
  EntryFilter filter;
  filter.kind = EntryKind::kVoucherExpired;
  const auto page = core->statement(anna, "", filter);
  std::int64_t expired = 0;
  for (const auto& entry : page->items) expired += entry.amount_micro;
  EXPECT_EQ(expired, 10 * kPrice - by_voucher);
}

TEST_F(CoreTest, Voucher_Alone_EndsTheRunWhenItExpires) {
  ASSERT_TRUE(core->credit(context, anna, -100'000'000, "correction").ok());
  const auto end = clock.utc_now() + std::chrono::minutes{90};
  ASSERT_TRUE(core->give_voucher(context, anna.str(), 10 * kPrice, end, "").ok());
  const auto made = create(request());
  sync();
  ASSERT_EQ(start_code(made), "");
  sync();
  core.reset();
  open();  // and a restart forgets nothing of it
  sync();
  const auto paid_s = std::chrono::floor<seconds>(end - *show(made).run->ready_at).count();
  pass(3 * 3'600'000);
  EXPECT_EQ(show(made).row.state, InstanceState::kStopped);
  EXPECT_EQ(show(made).row.reason, "the balance is used up");
  EXPECT_EQ(show(made).cost_micro, charge_micro(kPrice, 1, paid_s * 1'000));
  EXPECT_EQ(core->account(anna)->balance_micro, 0);
  const auto late = core->give_voucher(context, "anna", 1, clock.utc_now(), "");
  EXPECT_EQ(late.error().code(), "bad_expiry");
}

TEST_F(CoreTest, Voucher_ExpiresWithinTheHour_IsNotEnoughForAStart) {
  ASSERT_TRUE(core->credit(context, anna, -100'000'000, "correction").ok());
  const auto end = clock.utc_now() + std::chrono::minutes{59};
  ASSERT_TRUE(core->give_voucher(context, "anna", 10 * kPrice, end, "").ok());
  const auto made = create(request());
  sync();
  EXPECT_EQ(start_code(made), "balance_too_low");
  ASSERT_TRUE(core->credit(context, anna, kPrice, "").ok());
  EXPECT_EQ(start_code(made), "");
  sync();
  EXPECT_EQ(show(made).row.state, InstanceState::kRunning);
}

TEST_F(CoreTest, Voucher_GivenMidRun_TakesThePlaceOfHeldCash) {
  const auto made = create(request());
  sync();
  ASSERT_EQ(start_code(made), "");
  sync();
  pass(120'000);
  EXPECT_EQ(core->account(anna)->held_micro,
            core->account(anna)->balance_micro - core->account(anna)->cash_micro);
  const auto cash = core->account(anna)->cash_micro;
  const auto end = clock.utc_now() + std::chrono::hours{48};
  ASSERT_TRUE(core->give_voucher(context, "anna", 5 * kPrice, end, "").ok());
  EXPECT_EQ(core->account(anna)->cash_micro, cash + 5 * kPrice);
  node.exit(made.row.id, 0);
  sync();
  EXPECT_EQ(core->account(anna)->cash_micro, 100'000'000);
}

TEST_F(CoreTest, Price_FromATimeOn_RunsKeepTheirs) {
  sync();
  const auto before = create(request());
  const auto after = create(request());
  sync();
  ASSERT_EQ(start_code(before), "");
  sync();
  const auto from = clock.utc_now() + std::chrono::minutes{10};
  ASSERT_TRUE(core->set_price(context, "rtx3090", 2 * kPrice, from, "winter").ok());
  ASSERT_TRUE(core->flush().ok());
  EXPECT_EQ(show(after).price_micro_per_hour, kPrice);
  core.reset();
  open();
  pass(3'600'000);
  EXPECT_EQ(show(after).price_micro_per_hour, 2 * kPrice);
  EXPECT_EQ(core->gpu_types().at(0).price_micro_per_hour, 2 * kPrice);
  EXPECT_EQ(show(before).price_micro_per_hour, kPrice);
  ASSERT_EQ(start_code(after), "");
  EXPECT_EQ(show(after).run->price_micro, 2 * kPrice);
  const auto code = [&](const char* item, std::int64_t price, std::optional<UtcTime> at) {
    const auto got = core->set_price(context, item, price, at, "");
    return got.ok() ? std::string() : got.error().code();
  };
  EXPECT_EQ(code("rtx3091", 1, {}), "unknown_card");
  EXPECT_EQ(code("RTX 3090", -1, {}), "bad_price");
  EXPECT_EQ(code("RTX 3090", 1, from), "bad_from");
  EXPECT_EQ(code("no-card", 7, {}), "");
  EXPECT_EQ(core->prices().size(), 3U);
}

TEST_F(CoreTest, Price_OfStorage_IsCountedInPieces) {
  create(request());
  sync();
  constexpr std::int64_t kGb = 50;  // the default disk
  ASSERT_TRUE(core->set_price(context, "storage-gb-day", 24'000, {}, "").ok());
  pass(2 * 3'600'000);
  const auto then = clock.utc_now() + std::chrono::minutes{30};
  ASSERT_TRUE(core->set_price(context, "storage-gb-day", 48'000, then, "").ok());
  pass(4 * 3'600'000);
  const auto paid = 100'000'000 - core->account(anna)->balance_micro;
  const std::int64_t low = kGb * 1'000 * 5 / 2;   // two hours and a half
  const std::int64_t high = kGb * 2'000 * 7 / 2;  // the rest
  EXPECT_NEAR(static_cast<double>(paid), static_cast<double>(low + high), kGb * 40.0);
  EXPECT_EQ(core->account_bill(anna, {}, {})->total_micro, paid);
}

TEST_F(CoreTest, Credits_CardWithoutAPrice_CostsOneAnHour) {
  config.prices_micro.clear();
  open();
  sync();
  EXPECT_EQ(core->create_instance(context, anna, request()).error().code(), "unknown_card");
  config.currency = "CREDIT";
  open();
  sync();
  const auto made = create(request());
  EXPECT_EQ(made.price_micro_per_hour, 1'000'000);
  EXPECT_EQ(made.currency, "CREDIT");
}

TEST_F(CoreTest, Group_Budget_BoundsItsMembers) {
  const auto bob = core->create_account(context, "bob", Role::kUser)->account.row.id;
  ASSERT_TRUE(core->credit(context, bob, 100'000'000, "gift").ok());
  ASSERT_TRUE(core->add_group(context, "lab", 3 * kPrice).ok());
  EXPECT_EQ(core->add_group(context, "lab", {}).error().code(), "name_taken");
  ASSERT_TRUE(core->set_member(context, "lab", "anna", true).ok());
  ASSERT_TRUE(core->set_member(context, "lab", "bob", true).ok());
  const auto hers = create(request());
  auto his = core->create_instance(context, bob, request());
  sync();
  ASSERT_EQ(start_code(hers), "");
  sync();
  pass(120'000);
  EXPECT_EQ(core->group("lab")->room_micro, 0) << "her lease took all of it";
  ASSERT_TRUE(core->start(context, bob, his->row.id.str()).ok()) << "and gives back for a start";
  sync();
  EXPECT_EQ(core->instance(bob, his->row.id.str())->row.state, InstanceState::kRunning);
  pass(12 * 3'600'000);
  EXPECT_EQ(show(hers).row.state, InstanceState::kStopped);
  const auto lab = *core->group("lab");
  EXPECT_EQ(lab.held_micro, 0);
  EXPECT_LE(lab.row.spent_micro, 3 * kPrice);
  EXPECT_GE(lab.row.spent_micro, 3 * kPrice - 2 * kPrice / 3'600 - 2);
  EXPECT_EQ(show(hers).cost_micro + core->instance(bob, his->row.id.str())->cost_micro,
            lab.row.spent_micro);
  EXPECT_EQ(start_code(hers), "budget_used_up");
  ASSERT_TRUE(core->set_budget(context, "lab", std::nullopt).ok());
  EXPECT_EQ(start_code(hers), "");
  EXPECT_EQ(core->set_member(context, "lab", "anna", false)->members, 1);
  EXPECT_EQ(core->set_member(context, "lab", "anna", false).error().code(), "not_a_member");
  EXPECT_EQ(core->group("nobody").error().code(), "no_such_group");
}

TEST_F(CoreTest, Outage_SecondsOfAPlatformStop_AreCreditedWithTheReason) {
  const auto made = create(request());
  sync();
  ASSERT_EQ(start_code(made), "");
  sync();
  pass(600'000);
  auto& run = node.instances().at(made.row.id).runs.begin()->second;
  core->on_observed(node.observed());
  // The start is given up by the platform while the node is late to end it.
  run.result.start_failed = true;
  run.result.reason = "the card fell off the bus";
  run.phase = RunPhase::kEnded;
  run.ran_ms = 600'000;
  sync();
  EXPECT_EQ(show(made).cost_micro, 0);
  EXPECT_EQ(core->account(anna)->balance_micro, 100'000'000);
  EntryFilter filter;
  filter.kind = EntryKind::kOutageCredit;
  const auto page = core->statement(anna, made.row.id.str(), filter);
  ASSERT_EQ(page->items.size(), 1U);
  EXPECT_EQ(page->items[0].amount_micro, charge_micro(kPrice, 1, 600'000));
  EXPECT_EQ(page->items[0].reason, "the start failed");
}

TEST_F(CoreTest, Notices_At24Hours1Hour10Minutes_ThenACleanStop) {
  ASSERT_TRUE(core->credit(context, anna, 25 * kPrice - 100'000'000, "correction").ok());
  const auto made = create(request());
  sync();
  ASSERT_EQ(start_code(made), "");
  sync();
  const auto ready = *show(made).run->ready_at;
  pass(26 * 3'600'000);
  EXPECT_EQ(show(made).row.reason, "the balance is used up");
  std::vector<std::int64_t> at_s;
  const auto events = core->events(anna, made.row.id.str(), 0, 1'000);
  for (const auto& event : events->items) {
    if (event.type != "warning") continue;
    EXPECT_NE(event.data.find("\"about\":\"balance\""), std::string::npos) << event.data;
    at_s.push_back(std::chrono::floor<seconds>(event.at - ready).count());
  }
  ASSERT_EQ(at_s.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int64_t due = std::array{60, 24 * 60, 25 * 60 - 10}[i] * 60;
    EXPECT_GE(at_s[i], due - 61);
    EXPECT_LE(at_s[i], due + 61);
  }
}

}  // namespace
}  // namespace autodl
