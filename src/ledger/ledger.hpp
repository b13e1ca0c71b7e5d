// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Ledger: double entry in integer micro-units. Every movement takes a positive amount out of one
// book and puts it into another; entries are append-only. Books are per account.
//
//   credit:   external -> wallet      hold:         wallet -> held (of one run)
//   voucher:  voucher  -> wallet      hold_release: held   -> wallet
//   outage:   outage   -> wallet      charge:       held | wallet -> revenue
//
// Invariants, checked after each posting: the sum over all books is 0; wallet and held are never
// negative; held equals the sum of the runs' holds. Deterministic; owned by ControlCore.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"

namespace autodl {

enum class Book { kExternal, kWallet, kHeld, kRevenue, kVoucher, kOutage };
enum class EntryKind { kHold, kHoldRelease, kCharge, kCredit };

struct LedgerEntry {
  std::int64_t seq = 0;
  UtcTime at;
  AccountId account;
  InstanceId instance;
  RunId run;
  EntryKind kind = EntryKind::kCredit;
  Book from = Book::kExternal;
  Book to = Book::kWallet;
  std::int64_t amount_micro = 0;
  std::string reason;
  bool operator==(const LedgerEntry&) const = default;
};

// One row of ledger_balances: a book of an account (run empty), or the hold of a run.
struct BalanceRow {
  AccountId account;
  Book book = Book::kWallet;
  RunId run;
  std::int64_t amount_micro = 0;
  bool operator==(const BalanceRow&) const = default;
};

std::string_view to_string(Book book);
std::string_view to_string(EntryKind kind);
std::optional<Book> parse_book(std::string_view text);
std::optional<EntryKind> parse_entry_kind(std::string_view text);

class Ledger {
 public:
  // From a store: the balances and the highest entry number.
  static Result<Ledger> load(const std::vector<BalanceRow>& balances, std::int64_t last_seq);

  std::int64_t balance(const AccountId& account, Book book) const;
  std::int64_t available(const AccountId& account) const { return balance(account, Book::kWallet); }
  std::int64_t held(const AccountId& account) const { return balance(account, Book::kHeld); }
  std::int64_t held_for(const RunId& run) const;

  // Each posts one entry or changes nothing. kPayment balance_too_low; kInvalid bad_amount.
  Result<LedgerEntry> credit(const AccountId& account, std::int64_t amount, UtcTime at,
                             std::string_view reason);  // negative: a correction
  Result<LedgerEntry> hold(const AccountId& account, const InstanceId& instance, const RunId& run,
                           std::int64_t amount, UtcTime at, std::string_view reason);
  Result<LedgerEntry> release(const AccountId& account, const InstanceId& instance,
                              const RunId& run, std::int64_t amount, UtcTime at,
                              std::string_view reason);
  Result<LedgerEntry> charge_held(const AccountId& account, const InstanceId& instance,
                                  const RunId& run, std::int64_t amount, UtcTime at,
                                  std::string_view reason);
  Result<LedgerEntry> charge_wallet(const AccountId& account, const InstanceId& instance,
                                    std::int64_t amount, UtcTime at, std::string_view reason);

  // The balance rows that one entry has changed, to be written with it.
  std::vector<BalanceRow> rows_of(const LedgerEntry& entry) const;
  Status check() const;
  std::int64_t last_seq() const { return last_seq_; }

 private:
  Result<LedgerEntry> post(LedgerEntry entry);

  std::map<std::pair<AccountId, Book>, std::int64_t> books_;
  std::map<RunId, std::pair<AccountId, std::int64_t>> holds_;
  std::int64_t last_seq_ = 0;
};

}  // namespace autodl
