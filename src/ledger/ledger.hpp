// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Ledger: double entry in integer micro-units. Every movement takes a positive amount out of one
// book and puts it into another; entries are append-only. Books are per account.
//
//   credit          external -> wallet
//   hold            wallet | voucher -> held (of a run)
//   hold_release    held -> wallet | voucher
//   charge          held | wallet | voucher -> revenue
//   voucher         grant -> voucher
//   voucher_expired voucher -> grant
//   outage_credit   outage -> revenue: what the platform pays for seconds it took from a run
//
// An entry that moves a voucher's money names it; so each voucher and each hold is followed to the
// micro-unit. external, grant, outage and revenue are the platform's side.
//
// Invariants: the sum over all books is 0; wallet, voucher and held are never negative; held equals
// the sum of the runs' holds, voucher the sum of what is left of each. Deterministic; owned by
// ControlCore.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"

namespace autodl {

enum class Book { kExternal, kWallet, kHeld, kRevenue, kVoucher, kOutage, kGrant };
enum class EntryKind {
  kHold,
  kHoldRelease,
  kCharge,
  kCredit,
  kVoucher,
  kVoucherExpired,
  kOutageCredit
};

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
  VoucherId voucher = {};  // empty: cash
  bool operator==(const LedgerEntry&) const = default;
};

// One row of ledger_balances: a book of an account (run and voucher empty), what is left of a
// voucher (run empty), or what a run holds of cash or of a voucher.
struct BalanceRow {
  AccountId account;
  Book book = Book::kWallet;
  RunId run;
  std::int64_t amount_micro = 0;
  VoucherId voucher = {};
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
  // Cash that is free to spend.
  std::int64_t available(const AccountId& account) const { return balance(account, Book::kWallet); }
  // Of cash and of vouchers.
  std::int64_t held(const AccountId& account) const { return balance(account, Book::kHeld); }
  std::int64_t held_for(const RunId& run) const;
  std::int64_t held_for(const RunId& run, const VoucherId& voucher) const;  // empty: cash
  std::int64_t voucher_left(const VoucherId& voucher) const;                // not held
  // What a run holds, by voucher (the empty one: cash).
  std::vector<std::pair<VoucherId, std::int64_t>> parts_of(const RunId& run) const;

  // Each posts one entry or changes nothing. kPayment balance_too_low; kInvalid bad_amount.
  // voucher: whose money is meant; empty: cash.
  Result<LedgerEntry> credit(const AccountId& account, std::int64_t amount, UtcTime at,
                             std::string_view reason);  // negative: a correction
  Result<LedgerEntry> hold(const AccountId& account, const InstanceId& instance, const RunId& run,
                           std::int64_t amount, UtcTime at, std::string_view reason,
                           const VoucherId& voucher = {});
  Result<LedgerEntry> release(const AccountId& account, const InstanceId& instance,
                              const RunId& run, std::int64_t amount, UtcTime at,
                              std::string_view reason, const VoucherId& voucher = {});
  Result<LedgerEntry> charge_held(const AccountId& account, const InstanceId& instance,
                                  const RunId& run, std::int64_t amount, UtcTime at,
                                  std::string_view reason, const VoucherId& voucher = {});
  Result<LedgerEntry> charge_free(const AccountId& account, const InstanceId& instance,
                                  std::int64_t amount, UtcTime at, std::string_view reason,
                                  const VoucherId& voucher = {});
  Result<LedgerEntry> give_voucher(const AccountId& account, const VoucherId& voucher,
                                   std::int64_t amount, UtcTime at, std::string_view reason);
  // What is left of it and not held.
  Result<LedgerEntry> expire_voucher(const AccountId& account, const VoucherId& voucher, UtcTime at,
                                     std::string_view reason);
  Result<LedgerEntry> outage_credit(const AccountId& account, const InstanceId& instance,
                                    const RunId& run, std::int64_t amount, UtcTime at,
                                    std::string_view reason);

  // The balance rows that one entry has changed, to be written with it.
  std::vector<BalanceRow> rows_of(const LedgerEntry& entry) const;
  Status check() const;
  std::int64_t last_seq() const { return last_seq_; }

 private:
  Result<LedgerEntry> post(LedgerEntry entry);

  struct Part {
    AccountId account;
    std::int64_t amount = 0;
  };
  Status check_hold(const LedgerEntry& entry) const;
  void move_parts(const LedgerEntry& entry);

  std::map<std::pair<AccountId, Book>, std::int64_t> books_;
  std::map<RunId, std::map<VoucherId, Part>> holds_;  // no zeros
  std::map<VoucherId, Part> vouchers_;                // not held; no zeros
  std::int64_t last_seq_ = 0;
};

}  // namespace autodl
