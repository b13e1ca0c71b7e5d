// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Vouchers: money for a time, used before cash, the one that expires soonest first. A voucher pays
// for whole seconds of a run that end before it expires, told on the run's own time (its ready
// anchor and its steady clock), so that no jump of a clock changes a bill. What is left and not
// held when it expires goes back to where it came from.
#include <fmt/format.h>

#include <algorithm>

#include "control/detail/core_state.hpp"

namespace autodl {
namespace {

constexpr std::size_t kVouchersMax = 100;  // of an account, with something left

}  // namespace

// Of the run's own time: before it is ready, as if it were ready now.
std::int64_t ControlCore::State::limit_ms(const RunRow& run, const VoucherRow& voucher) const {
  const auto left = voucher.expires_at - run.ready_at.value_or(now());
  const auto ms = std::chrono::floor<Millis>(left).count();
  return std::clamp<std::int64_t>(ms, 0, kPaidForever);
}

// Not yet expired, with something left; soonest first.
std::vector<VoucherId> ControlCore::State::usable_vouchers(const AccountId& account) const {
  std::vector<VoucherId> out;
  const auto found = vouchers_of.find(account);
  if (found == vouchers_of.end()) return out;
  for (const auto& id : found->second) {
    if (vouchers.at(id).expires_at > now() && ledger.voucher_left(id) > 0) out.push_back(id);
  }
  return out;
}

std::int64_t ControlCore::State::available(const AccountId& account) const {
  std::int64_t sum = ledger.available(account);
  for (const auto& id : usable_vouchers(account)) sum += ledger.voucher_left(id);
  return sum;
}

// In the order in which they pay: vouchers_of is sorted so.
std::vector<Fund> ControlCore::State::funds_of(const RunRow& run) const {
  std::map<VoucherId, std::int64_t> held;
  for (const auto& [voucher, amount] : ledger.parts_of(run.id)) held[voucher] = amount;
  std::vector<Fund> out;
  const auto mine = vouchers_of.find(run.account);
  if (mine != vouchers_of.end()) {
    for (const auto& id : mine->second) {
      const VoucherRow& voucher = vouchers.at(id);
      const std::int64_t left = voucher.expires_at > now() ? ledger.voucher_left(id) : 0;
      const auto of_run = held.find(id);
      const std::int64_t of_it = of_run == held.end() ? 0 : of_run->second;
      if (left > 0 || of_it > 0) out.push_back({id, of_it, left, limit_ms(run, voucher)});
    }
  }
  out.push_back({{}, held[VoucherId()], ledger.available(run.account), kPaidForever});
  return out;
}

RunTerms ControlCore::State::terms_of(const RunRow& run) const {
  return {run.price_micro, run.gpu_count, run.settled_micro};
}

// How far the first `amount` of its hold pays, as a position of its cost.
std::int64_t ControlCore::State::covered(const RunRow& run, std::int64_t amount) const {
  if (!vouchers_of.contains(run.account)) return run.settled_micro + amount;
  return covered_micro(terms_of(run), funds_of(run), amount);
}

// What could be held for it beyond what is.
std::int64_t ControlCore::State::reach(const RunRow& run) const {
  std::int64_t sum = -run.hold_micro;
  for (const auto part : plan_holds(terms_of(run), funds_of(run), kMicroMax)) sum += part;
  return sum;
}

Result<VoucherRow> ControlCore::State::give_voucher(const AccountId& account, std::int64_t amount,
                                                    UtcTime expires_at, std::string_view reason,
                                                    const AccountId& by) {
  ADL_TRY_STATUS(check_reason(reason));
  if (expires_at <= now()) {
    return Error(ErrorKind::kInvalid, "bad_expiry", "the voucher would have expired already",
                 "name a time in the future");
  }
  auto& mine = vouchers_of[account];
  if (mine.size() >= kVouchersMax) {
    return Error(
        ErrorKind::kInvalid, "too_many_vouchers",
        fmt::format("an account has at most {} vouchers that are not used up", kVouchersMax),
        "give one larger voucher");
  }
  VoucherRow row{VoucherId(ids.next()), account, amount, now(), expires_at, by,
                 std::string(reason)};
  ADL_TRY(entry, ledger.give_voucher(account, row.id, amount, now(), reason));
  record(entry);
  batch.vouchers.push_back(row);
  vouchers[row.id] = row;
  mine.push_back(row.id);
  std::sort(mine.begin(), mine.end(), [&](const VoucherId& a, const VoucherId& b) {
    const UtcTime at = vouchers.at(a).expires_at;
    const UtcTime bt = vouchers.at(b).expires_at;
    return at != bt ? at < bt : a < b;
  });
  // Used first: it takes the place of what is held and not used yet.
  for (const auto& id : active) {
    RunRow& run = runs.at(id);
    if (run.account != account || run.hold_micro != run.lease_micro || run.hold_micro == 0)
      continue;
    if (run.state == RunState::kRunning || run.state == RunState::kStarting) {
      take_hold(run, 0, kMicroMax, "a voucher is used first");
    }
  }
  return row;
}

// What a voucher holds beyond the last second it can pay for.
void ControlCore::State::drop_useless_holds(RunRow& run) {
  if (run.hold_micro != run.lease_micro || !vouchers_of.contains(run.account)) return;
  const auto funds = funds_of(run);
  const auto useful = plan_charge(terms_of(run), funds, kMicroMax);
  for (std::size_t i = 0; i < funds.size(); ++i) {
    const std::int64_t rest = funds[i].held - useful[i];
    if (funds[i].voucher.empty() || rest <= 0) continue;
    const auto entry = ledger.release(run.account, run.instance, run.id, rest, now(),
                                      "the voucher expires before it", funds[i].voucher);
    if (!entry.ok()) continue;
    record(*entry);
    change(run).hold_micro -= rest;
    run.lease_micro = run.hold_micro;
  }
}

// What is left of expired ones; what runs still hold of them follows when it comes back.
void ControlCore::State::expire_vouchers() {
  for (auto& [account, mine] : vouchers_of) {
    std::set<VoucherId> held;
    for (const auto& id : active) {
      if (runs.at(id).account != account) continue;
      for (const auto& [voucher, amount] : ledger.parts_of(id)) held.insert(voucher);
    }
    std::erase_if(mine, [&](const VoucherId& id) {
      const VoucherRow& row = vouchers.at(id);
      if (row.expires_at <= now() && ledger.voucher_left(id) > 0) {
        const auto entry = ledger.expire_voucher(
            account, id, now(), fmt::format("expired at {}", to_rfc3339(row.expires_at)));
        if (entry.ok()) record(*entry);
      }
      return ledger.voucher_left(id) == 0 && !held.contains(id);
    });
  }
  std::erase_if(vouchers_of, [](const auto& item) { return item.second.empty(); });
}

VoucherView ControlCore::State::view(const VoucherRow& voucher) const {
  VoucherView out;
  out.row = voucher;
  out.left_micro = ledger.voucher_left(voucher.id);
  for (const auto& id : active) {
    if (runs.at(id).account == voucher.account) {
      out.held_micro += ledger.held_for(id, voucher.id);
    }
  }
  out.currency = config.currency;
  if (const auto found = accounts.find(voucher.account); found != accounts.end()) {
    out.account_name = found->second.name;
  }
  return out;
}

Result<VoucherView> ControlCore::give_voucher(const RequestContext& context,
                                              std::string_view account, std::int64_t amount_micro,
                                              UtcTime expires_at, std::string_view reason) {
  ADL_TRY(id, state_->account_named(account));
  ADL_TRY(row, state_->give_voucher(id, amount_micro, expires_at, reason, context.caller));
  const VoucherView view = state_->view(row);
  state_->audit(context, {"voucher.give", view.account_name, "{}",
                          fmt::format(R"({{"voucher":"{}","amount_micro":{},"expires_at":"{}"}})",
                                      row.id.str(), amount_micro, to_rfc3339(expires_at)),
                          std::string(reason)});
  return view;
}

std::vector<VoucherView> ControlCore::vouchers(const AccountId& account) const {
  std::vector<VoucherView> out;
  for (const auto& [id, row] : state_->vouchers) {
    if (account.empty() || row.account == account) out.push_back(state_->view(row));
  }
  return out;
}

}  // namespace autodl
