// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "ledger/ledger.hpp"

#include <fmt/format.h>

#include "model/money.hpp"

namespace autodl {
namespace {

constexpr std::string_view kBooks[] = {"external", "wallet",  "held",
                                       "revenue",  "voucher", "outage"};
constexpr std::string_view kKinds[] = {"hold", "hold_release", "charge", "credit"};

template <class E, std::size_t N>
std::optional<E> parse(const std::string_view (&words)[N], std::string_view text) {
  for (std::size_t i = 0; i < N; ++i) {
    if (words[i] == text) return static_cast<E>(i);
  }
  return std::nullopt;
}

// Books that belong to the account holder; the others are the platform's side and may be negative.
bool never_negative(Book book) {
  return book == Book::kWallet || book == Book::kHeld;
}

Error broken(std::string message) {
  return Error(ErrorKind::kInternal, "ledger_broken", std::move(message));
}

}  // namespace

std::string_view to_string(Book book) {
  return kBooks[static_cast<std::size_t>(book)];
}
std::string_view to_string(EntryKind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}
std::optional<Book> parse_book(std::string_view text) {
  return parse<Book>(kBooks, text);
}
std::optional<EntryKind> parse_entry_kind(std::string_view text) {
  return parse<EntryKind>(kKinds, text);
}

Result<Ledger> Ledger::load(const std::vector<BalanceRow>& balances, std::int64_t last_seq) {
  Ledger ledger;
  ledger.last_seq_ = last_seq;
  for (const auto& row : balances) {
    if (row.run.empty()) {
      ledger.books_[{row.account, row.book}] = row.amount_micro;
    } else if (row.amount_micro != 0) {
      ledger.holds_[row.run] = {row.account, row.amount_micro};
    }
  }
  ADL_TRY_STATUS(ledger.check());
  return ledger;
}

std::int64_t Ledger::balance(const AccountId& account, Book book) const {
  const auto found = books_.find({account, book});
  return found == books_.end() ? 0 : found->second;
}

std::int64_t Ledger::held_for(const RunId& run) const {
  const auto found = holds_.find(run);
  return found == holds_.end() ? 0 : found->second.second;
}

Result<LedgerEntry> Ledger::credit(const AccountId& account, std::int64_t amount, UtcTime at,
                                   std::string_view reason) {
  LedgerEntry entry{0,
                    at,
                    account,
                    {},
                    {},
                    EntryKind::kCredit,
                    Book::kExternal,
                    Book::kWallet,
                    amount,
                    std::string(reason)};
  if (amount < 0 && amount >= -kMicroMax) {
    entry.from = Book::kWallet;
    entry.to = Book::kExternal;
    entry.amount_micro = -amount;
  }
  return post(std::move(entry));
}

Result<LedgerEntry> Ledger::hold(const AccountId& account, const InstanceId& instance,
                                 const RunId& run, std::int64_t amount, UtcTime at,
                                 std::string_view reason) {
  return post({0, at, account, instance, run, EntryKind::kHold, Book::kWallet, Book::kHeld, amount,
               std::string(reason)});
}

Result<LedgerEntry> Ledger::release(const AccountId& account, const InstanceId& instance,
                                    const RunId& run, std::int64_t amount, UtcTime at,
                                    std::string_view reason) {
  return post({0, at, account, instance, run, EntryKind::kHoldRelease, Book::kHeld, Book::kWallet,
               amount, std::string(reason)});
}

Result<LedgerEntry> Ledger::charge_held(const AccountId& account, const InstanceId& instance,
                                        const RunId& run, std::int64_t amount, UtcTime at,
                                        std::string_view reason) {
  return post({0, at, account, instance, run, EntryKind::kCharge, Book::kHeld, Book::kRevenue,
               amount, std::string(reason)});
}

Result<LedgerEntry> Ledger::charge_wallet(const AccountId& account, const InstanceId& instance,
                                          std::int64_t amount, UtcTime at,
                                          std::string_view reason) {
  return post({0,
               at,
               account,
               instance,
               {},
               EntryKind::kCharge,
               Book::kWallet,
               Book::kRevenue,
               amount,
               std::string(reason)});
}

Result<LedgerEntry> Ledger::post(LedgerEntry entry) {
  if (entry.amount_micro <= 0 || entry.amount_micro > kMicroMax) {
    return Error(ErrorKind::kInvalid, "bad_amount",
                 fmt::format("the amount is {}; 1 to {} micro-units are allowed",
                             entry.amount_micro, kMicroMax));
  }
  const std::int64_t from = balance(entry.account, entry.from);
  const std::int64_t to = balance(entry.account, entry.to);
  if (never_negative(entry.from) && from < entry.amount_micro) {
    return Error(
        ErrorKind::kPayment, "balance_too_low",
        fmt::format("{} micro-units are needed, {} are available", entry.amount_micro, from));
  }
  if (from < -kMicroMax + entry.amount_micro || to > kMicroMax - entry.amount_micro) {
    return Error(ErrorKind::kInvalid, "bad_amount", "the balance would grow beyond its bounds");
  }
  const bool of_hold = entry.from == Book::kHeld || entry.to == Book::kHeld;
  if (of_hold) {
    const std::int64_t held = held_for(entry.run);
    const std::int64_t change = entry.to == Book::kHeld ? entry.amount_micro : -entry.amount_micro;
    if (held + change < 0) {
      return Error(ErrorKind::kPayment, "balance_too_low",
                   fmt::format("{} micro-units are needed, {} are held for the run",
                               entry.amount_micro, held));
    }
    if (held + change == 0) {
      holds_.erase(entry.run);
    } else {
      holds_[entry.run] = {entry.account, held + change};
    }
  }
  books_[{entry.account, entry.from}] = from - entry.amount_micro;
  books_[{entry.account, entry.to}] = to + entry.amount_micro;
  entry.seq = ++last_seq_;
  return entry;
}

std::vector<BalanceRow> Ledger::rows_of(const LedgerEntry& entry) const {
  std::vector<BalanceRow> rows = {
      {entry.account, entry.from, {}, balance(entry.account, entry.from)},
      {entry.account, entry.to, {}, balance(entry.account, entry.to)}};
  if (entry.from == Book::kHeld || entry.to == Book::kHeld) {
    rows.push_back({entry.account, Book::kHeld, entry.run, held_for(entry.run)});
  }
  return rows;
}

Status Ledger::check() const {
  std::int64_t sum = 0;
  std::map<AccountId, std::int64_t> held;
  for (const auto& [run, hold] : holds_) {
    if (hold.second <= 0) return broken(fmt::format("run {} holds {}", run.str(), hold.second));
    held[hold.first] += hold.second;
  }
  for (const auto& [key, amount] : books_) {
    sum += amount;
    if (never_negative(key.second) && amount < 0) {
      return broken(
          fmt::format("account {}: {} is {}", key.first.str(), to_string(key.second), amount));
    }
    if (key.second == Book::kHeld) held[key.first] -= amount;
  }
  if (sum != 0) return broken(fmt::format("the books add up to {}, not to 0", sum));
  for (const auto& [account, difference] : held) {
    if (difference != 0) {
      return broken(
          fmt::format("account {}: holds differ from held by {}", account.str(), difference));
    }
  }
  return {};
}

}  // namespace autodl
