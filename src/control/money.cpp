// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Holds, leases and settlement of runs.
//
// hold:  money taken out of the wallet for a run, its unsettled use included. A start holds one
//        hour; renew() tops it up towards contact_grace, shared evenly over the wallet's runs.
// lease: the part of the hold that the node may be told is paid (<= hold). To give money back for
//        another start, the lease shrinks first; the money follows when the node has taken the
//        shorter lease in (desired_revision), so that it can never use what is no longer held.
#include <fmt/format.h>

#include <algorithm>

#include "control/detail/core_state.hpp"

namespace autodl {
namespace {

constexpr std::int64_t kHourMs = 3'600'000;
constexpr auto kRenewEvery = std::chrono::seconds{60};

}  // namespace

void ControlCore::State::record(const LedgerEntry& entry) {
  batch.entries.push_back(entry);
  for (auto& row : ledger.rows_of(entry)) {
    const std::string key = fmt::format("{} {} {} {}", row.account.str(), to_string(row.book),
                                        row.run.str(), row.voucher.str());
    dirty_balances[key] = std::move(row);
  }
}

// How long the run has been running by now: what the node last told, and the time since.
std::int64_t ControlCore::State::estimate_ms(const RunRow& run) const {
  const auto info = live.find(run.id);
  if (run.state == RunState::kEnded || info == live.end() || !info->second.observed_running) {
    return run.running_ms;
  }
  const auto since = std::chrono::duration_cast<Millis>(steady() - info->second.observed_at);
  return run.running_ms + std::max<std::int64_t>(since.count(), 0);
}

// What of it is charged: not what the platform's own stop took, never more than was held.
std::int64_t ControlCore::State::billed_ms(const RunRow& run, std::int64_t running_ms) const {
  std::int64_t ms = running_ms;
  if (run.start_timed_out || run.outcome == Outcome::kStartFailed) return 0;
  if (run.stop == StopBy::kPlatform) ms = std::min(ms, run.stop_at_ms);
  const std::int64_t paid = paid_ms(run.price_micro, run.gpu_count, covered(run, run.hold_micro));
  if (run.state == RunState::kEnded) return ms;  // settled: see close_run
  // The last second need not be whole: floor() drops it.
  return std::min(ms, std::min(paid, kPaidForever - 999) + 999);
}

std::int64_t ControlCore::State::cost(const RunRow& run, std::int64_t running_ms) const {
  if (run.state == RunState::kEnded) return run.settled_micro;
  return charge_micro(run.price_micro, run.gpu_count, billed_ms(run, running_ms));
}

std::int64_t ControlCore::State::hour_price(const RunRow& run) const {
  return charge_micro(run.price_micro, run.gpu_count, kHourMs);
}

std::int64_t ControlCore::State::max_runtime_ms(const RunRow& run) const {
  const auto& rule = instances.at(run.instance).max_runtime_s;
  return rule ? *rule * 1'000 : 0;
}

// The most it can have been running by now, as far as the node's last word goes: a run that was
// starting then may have been ready ever since.
std::int64_t ControlCore::State::most_ms(const RunRow& run) const {
  const auto info = live.find(run.id);
  if (info == live.end() || info->second.observed_at == SteadyTime{}) return run.running_ms;
  const auto since = std::chrono::duration_cast<Millis>(steady() - info->second.observed_at);
  return run.running_ms + std::max<std::int64_t>(since.count(), 0);
}

// How much longer the node may run it, from now.
std::int64_t ControlCore::State::lease_ms(const RunRow& run) const {
  const std::int64_t used = most_ms(run);
  const std::int64_t paid = paid_ms(run.price_micro, run.gpu_count, covered(run, run.lease_micro));
  std::int64_t left = std::min(paid - used, std::int64_t{config.contact_grace.count()});
  if (const std::int64_t rule = max_runtime_ms(run); rule > 0) left = std::min(left, rule - used);
  return std::max<std::int64_t>(left, 0);
}

// Plans the run's holds anew, towards the position `goal`, with at most `more` of free money; what
// the plan does not use is given back. Never reaches less far than before. The amount added.
std::int64_t ControlCore::State::take_hold(RunRow& run, std::int64_t more, std::int64_t goal,
                                           std::string_view reason) {
  const auto funds = funds_of(run);
  const RunTerms terms = terms_of(run);
  const std::int64_t before = run.hold_micro;
  goal = std::max(goal, covered(run, before));
  goal = std::min(goal, run.settled_micro + before + std::max<std::int64_t>(more, 0));
  const auto plan = plan_holds(terms, funds, goal);
  const auto move = [&](std::size_t i, bool out) {
    const std::int64_t by = out ? funds[i].held - plan[i] : plan[i] - funds[i].held;
    if (by <= 0) return;
    const auto entry =
        out ? ledger.release(run.account, run.instance, run.id, by, now(), reason, funds[i].voucher)
            : ledger.hold(run.account, run.instance, run.id, by, now(), reason, funds[i].voucher);
    if (!entry.ok()) return;  // less there than thought: the hold stays as it is
    record(*entry);
    run.hold_micro += out ? -by : by;
  };
  for (std::size_t i = 0; i < funds.size(); ++i) move(i, true);
  for (std::size_t i = 0; i < funds.size(); ++i) move(i, false);
  run.lease_micro = run.hold_micro;
  if (runs.contains(run.id)) change(run);
  return run.hold_micro - before;
}

// From the end: cash first, then what expires last.
void ControlCore::State::give_back(RunRow& run, std::int64_t amount, std::string_view reason) {
  const auto funds = funds_of(run);
  for (auto fund = funds.rbegin(); fund != funds.rend() && amount > 0; ++fund) {
    const std::int64_t part = std::min(fund->held, amount);
    if (part <= 0) continue;
    const auto entry =
        ledger.release(run.account, run.instance, run.id, part, now(), reason, fund->voucher);
    if (!entry.ok()) return;
    record(*entry);
    amount -= part;
    change(run).hold_micro -= part;
  }
  run.lease_micro = std::min(run.lease_micro, run.hold_micro);
}

void ControlCore::State::settle(RunRow& run, bool final) {
  const std::int64_t total = cost(run, run.running_ms);
  const auto funds = funds_of(run);
  const auto parts = plan_charge(terms_of(run), funds, total);
  const std::string reason = fmt::format("{} s of use", billed_ms(run, run.running_ms) / 1'000);
  for (std::size_t i = 0; i < funds.size(); ++i) {
    if (parts[i] <= 0) continue;
    const auto entry = ledger.charge_held(run.account, run.instance, run.id, parts[i], now(),
                                          reason, funds[i].voucher);
    if (!entry.ok()) continue;
    record(*entry);
    note_spent(run.account, parts[i]);
    change(run).settled_micro += parts[i];
    run.hold_micro -= parts[i];
    run.lease_micro = std::max<std::int64_t>(run.lease_micro - parts[i], 0);
  }
  if (final) give_back(run, run.hold_micro, "the run is over");
}

// Seconds that the platform took from a run: what they would have cost, paid by the platform.
void ControlCore::State::credit_outage(RunRow& run, std::string_view why) {
  const std::int64_t whole = charge_micro(run.price_micro, run.gpu_count, run.running_ms);
  if (whole <= run.settled_micro) return;
  const auto entry = ledger.outage_credit(run.account, run.instance, run.id,
                                          whole - run.settled_micro, now(), why);
  if (entry.ok()) record(*entry);
}

// What of a run's lease goes beyond its unsettled use and one more hour.
std::int64_t ControlCore::State::excess(const RunRow& run) const {
  if (run.state != RunState::kStarting && run.state != RunState::kRunning) return 0;
  // What it may have used since the node's last word stays with it.
  const auto info = live.find(run.id);
  if (info == live.end() || info->second.observed_at == SteadyTime{}) return 0;
  const std::int64_t goal = std::max(cost(run, most_ms(run)), run.settled_micro) + hour_price(run);
  return std::max<std::int64_t>(run.lease_micro - needed_micro(terms_of(run), funds_of(run), goal),
                                0);
}

ControlCore::State::Among ControlCore::State::of_account(const AccountId& account) const {
  return [account](const RunRow& run) { return run.account == account; };
}

// What runs could give to new starts, less what waiting starts already count on.
std::int64_t ControlCore::State::reclaimable(const Among& among) const {
  std::int64_t sum = 0;
  for (const auto& id : active) {
    const RunRow& run = runs.at(id);
    if (!among(run)) continue;
    sum += excess(run) + (run.hold_micro - run.lease_micro);
    if (run.state == RunState::kQueued) sum -= hour_price(run) - run.hold_micro;
  }
  return sum;
}

// Money that runs give back as soon as the node has taken their shorter leases in.
std::int64_t ControlCore::State::coming_back(const Among& among) const {
  std::int64_t sum = 0;
  for (const auto& id : active) {
    const RunRow& run = runs.at(id);
    if (among(run)) sum += run.hold_micro - run.lease_micro;
  }
  return sum;
}

void ControlCore::State::shrink_others(const Among& among, std::int64_t wanted) {
  wanted -= coming_back(among);
  for (const auto& id : active) {
    RunRow& run = runs.at(id);
    if (!among(run) || wanted <= 0) continue;
    const std::int64_t take = std::min(excess(run), wanted);
    if (take <= 0) continue;
    change(run).lease_micro -= take;
    wanted -= take;
    touch_desired();
    live[id].shrink_revision = revision;
  }
}

// A start holds one hour's price, or counts on what other runs give back; else it is refused. Both
// the account's money and its group's budget must allow it.
Status ControlCore::State::fund_start(RunRow& run) {
  const std::int64_t need = hour_price(run);
  if (need == 0) return {};
  const auto mine = of_account(run.account);
  const auto ours = of_group_of(run.account);
  const std::int64_t have = reach(run);
  const std::int64_t others = reclaimable(mine);
  const std::int64_t promised = others < 0 ? -others : 0;  // to starts that wait for money
  const std::int64_t budget = room(run.account);
  const std::int64_t members = reclaimable(ours);
  const std::int64_t spoken_for = members < 0 ? -members : 0;
  if (have - promised >= need && budget - spoken_for >= need) {
    take_hold(run, need, need, "one hour for the start");
    return {};
  }
  if (have + others < need) {
    return Error(ErrorKind::kPayment, "balance_too_low",
                 fmt::format("a start holds one hour's price, {} micro-{}; {} are available", need,
                             config.currency, std::max<std::int64_t>(have + others, 0)),
                 "ask the operator for credit, or stop another run");
  }
  if (budget + members < need) {
    return Error(
        ErrorKind::kPayment, "budget_used_up",
        fmt::format("a start holds one hour's price, {} micro-{}; the budget of group '{}' has room"
                    " for {}",
                    need, config.currency, group_of(run.account)->name,
                    std::max<std::int64_t>(budget + members, 0)),
        "ask the operator for a larger budget, or wait until another member's run ends");
  }
  shrink_others(mine, need + promised - have);
  shrink_others(ours, need + spoken_for - budget);
  return {};  // queued; fund_waiting() holds it when the money is back
}

void ControlCore::State::finish_shrinks() {
  for (const auto& id : active) {
    RunRow& run = runs.at(id);
    const std::int64_t spare = run.hold_micro - run.lease_micro;
    if (spare <= 0) continue;
    const NodeLive* node = node_of(instances.at(run.instance));
    RunLive& info = live[id];
    if (info.shrink_revision == 0) {  // shrunk by the process before this one: tell it again
      touch_desired();
      info.shrink_revision = revision;
    }
    if (node == nullptr || node->observed.desired_revision < info.shrink_revision) continue;
    give_back(run, spare, "for another start");
    info.shrink_revision = 0;
  }
}

// Whether it can still be paid for.
bool ControlCore::State::fund_one_waiting(RunRow& run) {
  const std::int64_t lacking = hour_price(run) - run.hold_micro;
  if (lacking <= 0) return true;
  const auto mine = of_account(run.account);
  const auto ours = of_group_of(run.account);
  const std::int64_t have = reach(run);
  const std::int64_t budget = room(run.account);
  if (have >= lacking && budget >= lacking) {
    take_hold(run, lacking, hour_price(run), "one hour for the start");
    return true;
  }
  if (have + reclaimable(mine) < 0 || budget + reclaimable(ours) < 0) return false;
  shrink_others(mine, lacking - have);
  shrink_others(ours, lacking - budget);
  return true;
}

void ControlCore::State::fund_waiting() {
  for (const auto& id : std::set<RunId>(active)) {
    RunRow& run = runs.at(id);
    if (run.state != RunState::kQueued || fund_one_waiting(run)) continue;
    RunResult result;
    result.start_failed = true;
    result.reason = "the balance no longer holds one hour's price";
    if (room(run.account) < hour_price(run)) {
      result.reason = "the group's budget no longer holds one hour's price";
    }
    end_run(run, result);
  }
}

void ControlCore::State::renew_account(const AccountId& account,
                                       const std::vector<RunRow*>& of_account) {
  std::vector<std::pair<std::int64_t, RunRow*>> lacks;
  std::int64_t pool = std::min(available(account), room(account));
  for (RunRow* run : of_account) {
    if (run->state == RunState::kQueued) {
      pool -= hour_price(*run) - run->hold_micro;
      continue;
    }
    if (run->state == RunState::kStopping) continue;
    if (run->hold_micro > run->lease_micro) return;  // money is on its way to another start
    const std::int64_t used = estimate_ms(*run);
    std::int64_t ahead = config.contact_grace.count();
    if (const auto rule = max_runtime_ms(*run); rule > 0) {
      ahead = std::clamp<std::int64_t>(rule - used, 0, ahead);
    }
    const std::int64_t target =
        cost(*run, used) + charge_micro(run->price_micro, run->gpu_count, ahead + 999);
    const std::int64_t lack = target - covered(*run, run->hold_micro);
    lacks.emplace_back(std::max<std::int64_t>(lack, 0), run);
  }
  std::sort(lacks.begin(), lacks.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second->id < b.second->id;
  });
  auto left = static_cast<std::int64_t>(lacks.size());
  for (auto& [lack, run] : lacks) {
    const std::int64_t share = std::max<std::int64_t>(pool, 0) / left--;
    const std::int64_t give = std::min(lack, share);
    // Not an entry every minute for a minute's worth, as long as hours are held.
    const std::int64_t ahead = covered(*run, run->hold_micro) - run->settled_micro;
    const bool worth = give >= hour_price(*run) / 6 || ahead < hour_price(*run);
    std::int64_t taken = 0;
    if (give > 0 && worth) {
      const std::int64_t goal = covered(*run, run->hold_micro) + give;
      taken = take_hold(*run, give, goal, "lease renewed");
      pool -= taken;
    }
    warn_low(*run, share - taken);
  }
}

// The most urgent notice that has not been given: 24 h, 1 h, 10 min of running time are left.
void ControlCore::State::warn_low(RunRow& run, std::int64_t share) {
  if (run.price_micro == 0 || run.state != RunState::kRunning) return;
  const std::int64_t used = estimate_ms(run);
  const std::int64_t money = std::min(covered(run, run.hold_micro) + share,
                                      run.settled_micro + run.hold_micro + reach(run));
  const std::int64_t left = paid_ms(run.price_micro, run.gpu_count, money) - used;
  if (const auto rule = max_runtime_ms(run); rule > 0 && rule - used <= left) return;
  const std::int64_t level = left < kHourMs / 6 ? 3 : left < kHourMs ? 2 : left < 24 * kHourMs;
  if (level <= run.warned) {
    if (level < run.warned) change(run).warned = level;  // topped up: warn again next time
    return;
  }
  change(run).warned = level;
  emit(instances.at(run.instance), run.id,
       {"warning",
        fmt::format("the balance lasts for {} more minutes, then the run is stopped",
                    std::max<std::int64_t>(left / 60'000, 0)),
        fmt::format(R"({{"about":"balance","left_s":{},"level":"{}"}})",
                    std::max<std::int64_t>(left / 1'000, 0),
                    level == 3   ? "10 min"
                    : level == 2 ? "1 h"
                                 : "24 h")});
}

void ControlCore::State::renew() {
  if (steady() - renewed_at < kRenewEvery) return;
  renewed_at = steady();
  std::map<AccountId, std::vector<RunRow*>> by_account;
  for (const auto& id : active) {
    RunRow& run = runs.at(id);
    by_account[run.account].push_back(&run);
    if (run.state != RunState::kRunning && run.state != RunState::kStopping) continue;
    const std::int64_t due = cost(run, run.running_ms) - run.settled_micro;
    if (due > 0 && due >= hour_price(run)) settle(run, false);  // on the hour
    change(run);                                                // running_ms, once a minute
    drop_useless_holds(run);
  }
  expire_vouchers();
  for (const auto& [account, of_account] : by_account) renew_account(account, of_account);
  forget_old();
  count_storage(false);
}

}  // namespace autodl
