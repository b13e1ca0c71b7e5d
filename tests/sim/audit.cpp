// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The auditor: what must hold, told from the store's rows and the machine's history alone.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/money.hpp"
#include "simulation.hpp"

namespace autodl::sim {
namespace {

// What delays on the link both ways and the stages of a stop may cost the platform.
constexpr std::int64_t kLateMs = 60'000;
// A node that has just begun is still looking around.
constexpr Millis kSettled{60'000};

std::string describe(const Truth* truth) {
  if (truth == nullptr) return "the machine never had it";
  const auto at = [](const std::optional<Millis>& time) { return time ? time->count() : -1; };
  return fmt::format("ready {}, started {}, ended {}{}{}", at(truth->ready), at(truth->started),
                     at(truth->ended), truth->hurt ? ", hurt" : "",
                     truth->unseen ? ", unseen" : "");
}

}  // namespace

std::string Simulation::audit_step() {
  if (!broken_.empty()) return broken_;
  if (const auto good = core_->check_invariants(); !good.ok()) return good.error().message();
  node_.check();
  return node_.broken();
}

// The books, added up again from the entries alone.
std::string Simulation::audit_money() const {
  std::map<std::pair<AccountId, Book>, std::int64_t> books;
  std::map<RunId, std::int64_t> holds;
  std::map<RunId, std::int64_t> charges;
  std::int64_t last = 0;
  for (const auto& [seq, entry] : store_.all_entries()) {
    if (seq != ++last) return fmt::format("entry {} follows {}", seq, last - 1);
    if (entry.amount_micro <= 0) return fmt::format("entry {} moves nothing", seq);
    auto& from = books[{entry.account, entry.from}] -= entry.amount_micro;
    books[{entry.account, entry.to}] += entry.amount_micro;
    const bool own = entry.from == Book::kWallet || entry.from == Book::kHeld;
    if (own && from < 0)
      return fmt::format("entry {} makes {} negative", seq, to_string(entry.from));
    if (entry.from == Book::kHeld && (holds[entry.run] -= entry.amount_micro) < 0) {
      return fmt::format("entry {} takes more than run {} holds", seq, entry.run.str());
    }
    if (entry.to == Book::kHeld) holds[entry.run] += entry.amount_micro;
    if (entry.kind == EntryKind::kCharge && !entry.run.empty()) {
      charges[entry.run] += entry.amount_micro;
    }
  }
  for (const auto& [id, run] : store_.all_runs()) {
    if (holds[run.id] != run.hold_micro) return fmt::format("run {}: its hold differs", id);
    if (charges[run.id] != run.settled_micro) return fmt::format("run {}: its charge differs", id);
    if (run.state == RunState::kEnded && run.hold_micro != 0) return "an ended run holds money";
  }
  return {};
}

// The charge of each run against the machine's own history of it.
std::string Simulation::audit_run(const RunRow& run, const Truth* truth) const {
  const std::string id = run.id.str();
  const auto used = [&](const std::optional<Millis>& from) {
    if (truth == nullptr || !from) return std::int64_t{0};
    return std::int64_t{(truth->ended.value_or(elapsed_) - *from).count()};
  };
  const std::int64_t most_ms = truth == nullptr ? 0 : used(truth->ready);
  const std::int64_t most = charge_micro(run.price_micro, run.gpu_count, most_ms);
  if (run.settled_micro > most) {
    return fmt::format("run {}: {} charged, {} used in {} ms (told {}); {}", id, run.settled_micro,
                       most, most_ms, run.running_ms, describe(truth));
  }
  if (truth == nullptr) return {};
  // What ran after the last lease that the node held (it was away or slow) is free.
  if (const auto left = node_.lease_left(truth->instance, run.id); left && !truth->ended)
    paid_until_.insert_or_assign(run.id, elapsed_ + *left);
  if (!truth->started) return {};
  std::int64_t least_ms = used(truth->started);
  if (const auto paid = paid_until_.find(run.id); paid != paid_until_.end())
    least_ms = std::min(least_ms, std::int64_t{(paid->second - *truth->started).count()});
  const bool ended = run.state == RunState::kEnded;
  // So is what ran after the end that a rule had set, though the node was away then.
  if (run.outcome == Outcome::kRule)
    for (const auto& [id_text, instance] : store_.all_instances())
      if (instance.id == truth->instance && instance.max_runtime_s)
        least_ms = std::min(least_ms, *instance.max_runtime_s * 1'000);
  const bool whole = ended && run.outcome != Outcome::kLost && !truth->hurt && !truth->unseen &&
                     run.outcome != Outcome::kStartFailed && run.stop != StopBy::kPlatform;
  const std::int64_t least =
      charge_micro(run.price_micro, run.gpu_count, std::max<std::int64_t>(least_ms - kLateMs, 0));
  if (whole && run.settled_micro < least) {
    return fmt::format("run {}: {} charged, {} used ({}, {} ms told, {} ms ran, by {})", id,
                       run.settled_micro, least, to_string(*run.outcome), run.running_ms, least_ms,
                       run.stop ? to_string(*run.stop) : "itself");
  }
  const bool watched = node_.alive() && elapsed_ - node_.up_since() > kSettled;
  if (truth->ended || !watched) return {};
  const auto lease = node_.lease_left(truth->instance, run.id);
  if (lease && lease->count() < -kLateMs) {
    return fmt::format("run {} goes on {} ms after its lease", id, -lease->count());
  }
  const std::int64_t paid =
      paid_ms(run.price_micro, run.gpu_count, run.settled_micro + run.hold_micro);
  if (!ended && lease && most_ms + lease->count() > paid + kLateMs) {
    return fmt::format("run {}: leased beyond what is held", id);
  }
  return {};
}

std::string Simulation::audit_runs() const {
  const auto& truths = node_.truths();
  for (const auto& [id, run] : store_.all_runs()) {
    const auto truth = truths.find(run.id);
    const Truth* known = truth == truths.end() ? nullptr : &truth->second;
    if (auto broken = audit_run(run, known); !broken.empty()) return broken;
    if (run.reason.find("is held by instance") != std::string::npos) {
      return fmt::format("run {} was granted a card that another holds: {}", id, run.reason);
    }
    // Lost is what was hurt; what the platform itself gave up says so.
    const bool lost = run.outcome == Outcome::kLost && !run.stop && known != nullptr &&
                      known->started && !known->hurt;
    if (lost && run.reason.find("silent") == std::string::npos) {
      return fmt::format("run {} was lost and nothing had happened to it: {}; {}", id, run.reason,
                         describe(known));
    }
  }
  return {};
}

// Every command that runs is one that control knows of and bills.
std::string Simulation::audit_orphans() const {
  for (const auto& [id, truth] : node_.truths()) {
    if (!truth.started || truth.ended) continue;
    const auto row = store_.all_runs().find(id.str());
    if (row == store_.all_runs().end() || row->second.state == RunState::kEnded) {
      return fmt::format("run {} runs, and for control it is over", id.str());
    }
  }
  return {};
}

std::string Simulation::all_at_rest() const {
  if (!core_->endpoints().empty()) {
    const auto left = core_->endpoints().front();
    return fmt::format("instance {} is not released ({})", left.instance.str(),
                       to_string(left.state));
  }
  for (const auto& account : core_->accounts()) {
    if (account.held_micro != 0) return "money is held and nothing runs";
  }
  for (const auto& [id, run] : store_.all_runs()) {
    if (run.state != RunState::kEnded || !run.outcome) return fmt::format("run {} never ended", id);
  }
  for (const auto& type : core_->gpu_types()) {
    if (type.free != type.total) return fmt::format("a card of {} is not free", type.name);
  }
  return node_.left_over();
}

}  // namespace autodl::sim
