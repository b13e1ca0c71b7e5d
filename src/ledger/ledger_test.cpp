// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "ledger/ledger.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/money.hpp"

namespace autodl {
namespace {

const AccountId kAnna{"A"};
const InstanceId kInstance{"I"};
const UtcTime kNow{std::chrono::seconds{1'800'000'000}};

TEST(Ledger_Hold, NeverMoreThanTheWallet) {
  Ledger ledger;
  ASSERT_TRUE(ledger.credit(kAnna, 100, kNow, "gift").ok());
  EXPECT_TRUE(ledger.hold(kAnna, kInstance, RunId("R"), 60, kNow, "").ok());
  const auto more = ledger.hold(kAnna, kInstance, RunId("S"), 41, kNow, "");
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().kind(), ErrorKind::kPayment);
  EXPECT_EQ(more.error().code(), "balance_too_low");
  EXPECT_EQ(ledger.available(kAnna), 40);
  EXPECT_FALSE(ledger.charge_held(kAnna, kInstance, RunId("S"), 1, kNow, "").ok());
  EXPECT_TRUE(ledger.charge_held(kAnna, kInstance, RunId("R"), 60, kNow, "").ok());
  EXPECT_EQ(ledger.balance(kAnna, Book::kRevenue), 60);
  EXPECT_TRUE(ledger.check().ok());
}

TEST(Ledger_Credit, CorrectionsStopAtZero) {
  Ledger ledger;
  ASSERT_TRUE(ledger.credit(kAnna, 100, kNow, "gift").ok());
  EXPECT_TRUE(ledger.credit(kAnna, -40, kNow, "mistake").ok());
  EXPECT_FALSE(ledger.credit(kAnna, -61, kNow, "mistake").ok());
  EXPECT_FALSE(ledger.credit(kAnna, 0, kNow, "").ok());
  EXPECT_FALSE(ledger.credit(kAnna, INT64_MIN, kNow, "").ok());
  EXPECT_FALSE(ledger.credit(kAnna, INT64_MAX, kNow, "").ok());
  EXPECT_EQ(ledger.available(kAnna), 60);
}

TEST(Ledger_Voucher, IsFollowedToTheMicroUnit) {
  Ledger ledger;
  const VoucherId may("V1");
  const RunId run("R");
  ASSERT_TRUE(ledger.give_voucher(kAnna, may, 100, kNow, "course").ok());
  EXPECT_EQ(ledger.available(kAnna), 0);
  EXPECT_FALSE(ledger.hold(kAnna, kInstance, run, 1, kNow, "").ok());  // there is no cash
  EXPECT_FALSE(ledger.hold(AccountId("B"), kInstance, run, 1, kNow, "", may).ok());
  ASSERT_TRUE(ledger.hold(kAnna, kInstance, run, 60, kNow, "", may).ok());
  EXPECT_FALSE(ledger.charge_held(kAnna, kInstance, run, 1, kNow, "").ok());  // not as cash
  ASSERT_TRUE(ledger.charge_held(kAnna, kInstance, run, 25, kNow, "", may).ok());
  ASSERT_TRUE(ledger.expire_voucher(kAnna, may, kNow, "").ok());
  EXPECT_EQ(ledger.voucher_left(may), 0);
  EXPECT_EQ(ledger.held_for(run), 35);
  ASSERT_TRUE(ledger.release(kAnna, kInstance, run, 35, kNow, "", may).ok());
  EXPECT_EQ(ledger.voucher_left(may), 35);
  EXPECT_FALSE(ledger.credit(kAnna, -1, kNow, "").ok());  // it never becomes cash
  ASSERT_TRUE(ledger.expire_voucher(kAnna, may, kNow, "").ok());
  EXPECT_FALSE(ledger.expire_voucher(kAnna, may, kNow, "").ok());
  EXPECT_EQ(ledger.balance(kAnna, Book::kGrant), -25);
  EXPECT_EQ(ledger.balance(kAnna, Book::kRevenue), 25);
  EXPECT_TRUE(ledger.check().ok());
}

TEST(Ledger_Load, RefusesBooksThatDoNotAddUp) {
  EXPECT_FALSE(Ledger::load({{kAnna, Book::kWallet, {}, 5}}, 1).ok());
  EXPECT_FALSE(
      Ledger::load({{kAnna, Book::kExternal, {}, -5}, {kAnna, Book::kHeld, {}, 5}}, 1).ok());
  EXPECT_TRUE(Ledger::load({{kAnna, Book::kExternal, {}, -5},
                            {kAnna, Book::kHeld, {}, 5},
                            {kAnna, Book::kHeld, RunId("R"), 5}},
                           1)
                  .ok());
}

// Whatever is tried in whatever order: books add up, nothing is negative, entries replay.
RC_GTEST_PROP(Ledger_Property, RandomHistoriesAddUp, ()) {
  Ledger ledger;
  std::vector<BalanceRow> stored;
  std::map<std::pair<std::string, Book>, std::int64_t> replay;
  const auto count = *rc::gen::inRange(0, 200);
  for (int i = 0; i < count; ++i) {
    const AccountId account(*rc::gen::element<std::string>("A", "B"));
    const RunId run(account.str() + *rc::gen::element<std::string>("1", "2"));
    const VoucherId voucher(account.str() + *rc::gen::element<std::string>("v", "w"));
    const auto amount = *rc::gen::inRange<std::int64_t>(-20, 1'000);
    Result<LedgerEntry> got = Error(ErrorKind::kInternal, "", "");
    switch (*rc::gen::inRange(0, 11)) {
      case 0: got = ledger.credit(account, amount, kNow, ""); break;
      case 1: got = ledger.hold(account, kInstance, run, amount, kNow, ""); break;
      case 2: got = ledger.release(account, kInstance, run, amount, kNow, ""); break;
      case 3: got = ledger.charge_held(account, kInstance, run, amount, kNow, ""); break;
      case 4: got = ledger.charge_free(account, kInstance, amount, kNow, ""); break;
      case 5: got = ledger.give_voucher(account, voucher, amount, kNow, ""); break;
      case 6: got = ledger.expire_voucher(account, voucher, kNow, ""); break;
      case 7: got = ledger.hold(account, kInstance, run, amount, kNow, "", voucher); break;
      case 8: got = ledger.release(account, kInstance, run, amount, kNow, "", voucher); break;
      case 9: got = ledger.charge_held(account, kInstance, run, amount, kNow, "", voucher); break;
      default: got = ledger.outage_credit(account, kInstance, run, amount, kNow, ""); break;
    }
    if (got.ok()) {
      RC_ASSERT(got->amount_micro > 0);
      replay[{account.str(), got->from}] -= got->amount_micro;
      replay[{account.str(), got->to}] += got->amount_micro;
      for (auto& row : ledger.rows_of(*got)) {
        std::erase_if(stored, [&](const BalanceRow& old) {
          return old.account == row.account && old.book == row.book && old.run == row.run &&
                 old.voucher == row.voucher;
        });
        stored.push_back(std::move(row));
      }
    }
    RC_ASSERT(ledger.check().ok());
  }
  const auto again = Ledger::load(stored, ledger.last_seq());  // what was written is the ledger
  RC_ASSERT(again.ok());
  for (const auto& [key, amount] : replay) {
    RC_ASSERT(again->balance(AccountId(key.first), key.second) == amount);
    RC_ASSERT(ledger.balance(AccountId(key.first), key.second) == amount);
  }
}

// Charging the growing cumulative total in pieces adds up to charging it once.
RC_GTEST_PROP(Ledger_Property, PiecesAddUpToTheWhole, ()) {
  const auto price = *rc::gen::inRange<std::int64_t>(0, 100'000'000);
  const auto cards = *rc::gen::inRange<std::int64_t>(0, 8);
  std::int64_t ms = 0;
  std::int64_t settled = 0;
  for (const auto step : *rc::gen::container<std::vector<std::int64_t>>(
           rc::gen::inRange<std::int64_t>(0, 10'000'000))) {
    ms += step;
    const auto due = charge_micro(price, cards, ms) - settled;
    RC_ASSERT(due >= 0);
    settled += due;
  }
  RC_ASSERT(settled == charge_micro(price, cards, ms));
}

}  // namespace
}  // namespace autodl
