// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "ledger/ledger.hpp"

#include <fmt/format.h>

#include "model/money.hpp"

namespace autodl {
namespace {

constexpr std::string_view kBooks[] = {"external", "wallet", "held", "revenue",
                                       "voucher",  "outage", "grant"};
constexpr std::string_view kKinds[] = {"hold",    "hold_release",    "charge",       "credit",
                                       "voucher", "voucher_expired", "outage_credit"};

template <class E, std::size_t N>
std::optional<E> parse(const std::string_view (&words)[N], std::string_view text) {
  for (std::size_t i = 0; i < N; ++i) {
    if (words[i] == text) return static_cast<E>(i);
  }
  return std::nullopt;
}

// Books that belong to the account holder; the others are the platform's side and may be negative.
bool never_negative(Book book) {
  return book == Book::kWallet || book == Book::kHeld || book == Book::kVoucher;
}

// Where an account's free money is: cash, or the vouchers'.
Book free_book(const VoucherId& voucher) {
  return voucher.empty() ? Book::kWallet : Book::kVoucher;
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
    if (row.run.empty() && row.voucher.empty()) {
      ledger.books_[{row.account, row.book}] = row.amount_micro;
    } else if (row.amount_micro != 0) {
      Part& part =
          row.run.empty() ? ledger.vouchers_[row.voucher] : ledger.holds_[row.run][row.voucher];
      part = {row.account, row.amount_micro};
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
  if (found == holds_.end()) return 0;
  std::int64_t sum = 0;
  for (const auto& [voucher, part] : found->second) sum += part.amount;
  return sum;
}

std::int64_t Ledger::held_for(const RunId& run, const VoucherId& voucher) const {
  const auto found = holds_.find(run);
  if (found == holds_.end()) return 0;
  const auto part = found->second.find(voucher);
  return part == found->second.end() ? 0 : part->second.amount;
}

std::vector<std::pair<VoucherId, std::int64_t>> Ledger::parts_of(const RunId& run) const {
  std::vector<std::pair<VoucherId, std::int64_t>> out;
  const auto found = holds_.find(run);
  if (found == holds_.end()) return out;
  for (const auto& [voucher, part] : found->second) out.emplace_back(voucher, part.amount);
  return out;
}

std::int64_t Ledger::voucher_left(const VoucherId& voucher) const {
  const auto found = vouchers_.find(voucher);
  return found == vouchers_.end() ? 0 : found->second.amount;
}

Result<LedgerEntry> Ledger::credit(const AccountId& account, std::int64_t amount, UtcTime at,
                                   std::string_view reason) {
  Book from = Book::kExternal;
  Book to = Book::kWallet;
  if (amount < 0 && amount >= -kMicroMax) {
    std::swap(from, to);
    amount = -amount;
  }
  return post(
      {0, at, account, {}, {}, EntryKind::kCredit, from, to, amount, std::string(reason), {}});
}

Result<LedgerEntry> Ledger::hold(const AccountId& account, const InstanceId& instance,
                                 const RunId& run, std::int64_t amount, UtcTime at,
                                 std::string_view reason, const VoucherId& voucher) {
  return post({0, at, account, instance, run, EntryKind::kHold, free_book(voucher), Book::kHeld,
               amount, std::string(reason), voucher});
}

Result<LedgerEntry> Ledger::release(const AccountId& account, const InstanceId& instance,
                                    const RunId& run, std::int64_t amount, UtcTime at,
                                    std::string_view reason, const VoucherId& voucher) {
  return post({0, at, account, instance, run, EntryKind::kHoldRelease, Book::kHeld,
               free_book(voucher), amount, std::string(reason), voucher});
}

Result<LedgerEntry> Ledger::charge_held(const AccountId& account, const InstanceId& instance,
                                        const RunId& run, std::int64_t amount, UtcTime at,
                                        std::string_view reason, const VoucherId& voucher) {
  return post({0, at, account, instance, run, EntryKind::kCharge, Book::kHeld, Book::kRevenue,
               amount, std::string(reason), voucher});
}

Result<LedgerEntry> Ledger::charge_free(const AccountId& account, const InstanceId& instance,
                                        std::int64_t amount, UtcTime at, std::string_view reason,
                                        const VoucherId& voucher) {
  return post({0,
               at,
               account,
               instance,
               {},
               EntryKind::kCharge,
               free_book(voucher),
               Book::kRevenue,
               amount,
               std::string(reason),
               voucher});
}

Result<LedgerEntry> Ledger::give_voucher(const AccountId& account, const VoucherId& voucher,
                                         std::int64_t amount, UtcTime at, std::string_view reason) {
  return post({0,
               at,
               account,
               {},
               {},
               EntryKind::kVoucher,
               Book::kGrant,
               Book::kVoucher,
               amount,
               std::string(reason),
               voucher});
}

Result<LedgerEntry> Ledger::expire_voucher(const AccountId& account, const VoucherId& voucher,
                                           UtcTime at, std::string_view reason) {
  return post({0,
               at,
               account,
               {},
               {},
               EntryKind::kVoucherExpired,
               Book::kVoucher,
               Book::kGrant,
               voucher_left(voucher),
               std::string(reason),
               voucher});
}

Result<LedgerEntry> Ledger::outage_credit(const AccountId& account, const InstanceId& instance,
                                          const RunId& run, std::int64_t amount, UtcTime at,
                                          std::string_view reason) {
  return post({0,
               at,
               account,
               instance,
               run,
               EntryKind::kOutageCredit,
               Book::kOutage,
               Book::kRevenue,
               amount,
               std::string(reason),
               {}});
}

// The parts that the entry takes from: a hold, a voucher.
Status Ledger::check_hold(const LedgerEntry& entry) const {
  const auto lacking = [&](std::int64_t have, std::string_view what) {
    return Error(
        ErrorKind::kPayment, "balance_too_low",
        fmt::format("{} micro-units are needed, {} are {}", entry.amount_micro, have, what));
  };
  if (entry.from == Book::kHeld) {
    const std::int64_t held = held_for(entry.run, entry.voucher);
    if (held < entry.amount_micro) return lacking(held, "held for the run");
  }
  if (entry.from == Book::kVoucher) {
    const auto found = vouchers_.find(entry.voucher);
    const bool own = found != vouchers_.end() && found->second.account == entry.account;
    const std::int64_t left = own ? found->second.amount : 0;
    if (left < entry.amount_micro) return lacking(left, "left of the voucher");
  }
  return {};
}

void Ledger::move_parts(const LedgerEntry& entry) {
  const auto add = [&](std::map<VoucherId, Part>& parts, std::int64_t amount) {
    Part& part = parts[entry.voucher];
    part.account = entry.account;
    part.amount += amount;
    if (part.amount == 0) parts.erase(entry.voucher);
  };
  if (entry.from == Book::kVoucher) add(vouchers_, -entry.amount_micro);
  if (entry.to == Book::kVoucher) add(vouchers_, entry.amount_micro);
  if (entry.from != Book::kHeld && entry.to != Book::kHeld) return;
  auto& hold = holds_[entry.run];
  add(hold, entry.to == Book::kHeld ? entry.amount_micro : -entry.amount_micro);
  if (hold.empty()) holds_.erase(entry.run);
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
  ADL_TRY_STATUS(check_hold(entry));
  move_parts(entry);
  books_[{entry.account, entry.from}] = from - entry.amount_micro;
  books_[{entry.account, entry.to}] = to + entry.amount_micro;
  entry.seq = ++last_seq_;
  return entry;
}

std::vector<BalanceRow> Ledger::rows_of(const LedgerEntry& entry) const {
  std::vector<BalanceRow> rows = {
      {entry.account, entry.from, {}, balance(entry.account, entry.from), {}},
      {entry.account, entry.to, {}, balance(entry.account, entry.to), {}}};
  if (entry.from == Book::kHeld || entry.to == Book::kHeld) {
    rows.push_back(
        {entry.account, Book::kHeld, entry.run, held_for(entry.run, entry.voucher), entry.voucher});
  }
  if (entry.from == Book::kVoucher || entry.to == Book::kVoucher) {
    rows.push_back({entry.account, Book::kVoucher, {}, voucher_left(entry.voucher), entry.voucher});
  }
  return rows;
}

Status Ledger::check() const {
  std::int64_t sum = 0;
  std::map<std::pair<AccountId, Book>, std::int64_t> parts;
  for (const auto& [run, hold] : holds_) {
    for (const auto& [voucher, part] : hold) {
      if (part.amount <= 0) return broken(fmt::format("run {} holds {}", run.str(), part.amount));
      parts[{part.account, Book::kHeld}] += part.amount;
    }
  }
  for (const auto& [voucher, part] : vouchers_) {
    if (part.amount <= 0) {
      return broken(fmt::format("voucher {} has {} left", voucher.str(), part.amount));
    }
    parts[{part.account, Book::kVoucher}] += part.amount;
  }
  for (const auto& [key, amount] : books_) {
    sum += amount;
    if (never_negative(key.second) && amount < 0) {
      return broken(
          fmt::format("account {}: {} is {}", key.first.str(), to_string(key.second), amount));
    }
    if (amount != 0 && (key.second == Book::kHeld || key.second == Book::kVoucher)) {
      parts[key] -= amount;
    }
  }
  if (sum != 0) return broken(fmt::format("the books add up to {}, not to 0", sum));
  for (const auto& [key, difference] : parts) {
    if (difference != 0) {
      return broken(fmt::format("account {}: the parts of {} differ from it by {}", key.first.str(),
                                to_string(key.second), difference));
    }
  }
  return {};
}

}  // namespace autodl
