// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/money.hpp"

namespace autodl::sim {
namespace {

using testing_support::ModelNode;

const RequestContext kUser{"sim", Actor::kUser};
const NodeId kNode{"local"};
constexpr auto kLinkDelayMax = std::chrono::seconds{10};  // a slower link counts as broken
constexpr std::int64_t kLateMs = 22'000;  // what delays, both ways, may cost the platform

std::vector<ObservedCard> cards() {
  std::vector<ObservedCard> out;
  for (int i = 0; i < 5; ++i) {
    ObservedCard card;
    card.id = CardId(fmt::format("GPU-{}", i));
    card.type = i < 3 ? "RTX 3090" : "A100 40GB";
    out.push_back(card);
  }
  return out;
}

}  // namespace

Simulation::Simulation(std::uint64_t seed)
    : random_(seed), ids_(seed ^ 0x5eed), node_(clock_, cards()) {
  config_.prices_micro = {{"RTX 3090", 1'580'000}, {"A100 40GB", 7'777'777}};
  config_.storage_micro_per_gb_day = chance(50) ? 10'000 : 0;
  config_.no_card_micro_per_hour = chance(50) ? 33'333 : 0;
  config_.contact_grace = std::chrono::hours{2};
  open_core();
  for (const char* name : {"anna", "bob"}) {
    accounts_.push_back(core_->create_account(kUser, name, Role::kUser)->account.row.id);
    (void)core_->credit(kUser, accounts_.back(), 20'000'000, "gift");
  }
  flush();
}

void Simulation::open_core() {
  auto opened = ControlCore::open(config_, store_, clock_, ids_, catalogue_, secrets_);
  if (!opened.ok()) {  // what was committed must always load
    fmt::print(stderr, "open: {}\n", opened.error().message());
    std::abort();
  }
  core_ = std::move(opened).value();
}

// The process dies: what was not flushed is gone, and so is all that is on the link.
void Simulation::crash_core() {
  ++stats_.crashes;
  to_node_.clear();
  to_control_.clear();
  open_core();
}

void Simulation::flush() {
  if (core_->flush().ok()) return;
  ++stats_.store_faults;
  crash_core();
}

void Simulation::send_desired() {
  flush();  // nothing leaves before it is durable
  if (auto set = core_->desired_set(kNode))
    to_node_.push_back({std::move(*set), clock_.steady_now()});
}

void Simulation::send_observed() {
  to_control_.push_back({node_.observed(), clock_.steady_now()});
}

template <class M, class F>
void Simulation::deliver(std::deque<Sent<M>>& link, bool faults, const F& take) {
  if (faults && link.size() > 1 && chance(10)) std::swap(link[0], link[1]);
  if (link.empty()) return;
  auto sent = link.front();
  if (!faults || !chance(5)) link.pop_front();  // else it comes again
  const bool late = clock_.steady_now() - sent.at > kLinkDelayMax;
  if (late || (faults && chance(15))) {
    ++stats_.lost_messages;
    if (late && !link.empty()) link.clear();
    return;
  }
  take(sent.message);
}

void Simulation::exchange(bool faults) {
  deliver(to_node_, faults, [&](const DesiredSet& set) { node_.on_desired(set); });
  deliver(to_control_, faults, [&](const ObservedSet& set) { core_->on_observed(set); });
}

void Simulation::advance(std::int64_t ms_max) {
  clock_.advance(Millis(random_.below(static_cast<std::uint64_t>(ms_max)) + 1));
}

InstanceId Simulation::any_instance() {
  std::vector<InstanceId> all;
  for (const auto& endpoint : core_->endpoints()) all.push_back(endpoint.instance);
  return all.empty() ? InstanceId() : all[random_.below(all.size())];
}

void Simulation::user_step() {
  const AccountId& account = accounts_[random_.below(accounts_.size())];
  const InstanceId id = any_instance();
  switch (random_.below(10)) {
    case 0:
    case 1: {
      if (core_->endpoints().size() >= 12) return;
      CreateRequest request;
      request.image = "autodl/base:trixie";
      request.gpu_count = static_cast<std::int64_t>(random_.below(4));
      if (request.gpu_count > 0) request.gpu_type = chance(60) ? "rtx3090" : "A100 40GB";
      if (chance(70)) request.command = "train";
      if (chance(30)) request.max_runtime_s = static_cast<std::int64_t>(random_.below(5'000)) + 1;
      if (chance(30)) request.restart = "on-loss";
      (void)core_->create_instance(kUser, account, request);
      return;
    }
    case 2:
    case 3:
    case 4:
    case 5:
      for (const auto& owner : accounts_) (void)core_->start(kUser, owner, id.str());
      return;
    case 6:
      for (const auto& owner : accounts_) (void)core_->stop(kUser, owner, id.str());
      return;
    case 7:
      if (!chance(40)) return;
      for (const auto& owner : accounts_) (void)core_->release(kUser, owner, id.str());
      return;
    case 8:
      (void)core_->credit(kUser, account, static_cast<std::int64_t>(random_.below(9'000'000)), "");
      return;
    default: (void)core_->credit(kUser, account, -3'000'000, "correction"); return;
  }
}

void Simulation::fault_step() {
  switch (random_.below(8)) {
    case 0: return crash_core();
    case 1: return store_.fail_at(static_cast<std::int64_t>(random_.below(3)) + 1, chance(50));
    case 2:  // the node's process
      node_.restart_process();
      to_node_.clear();
      to_control_.clear();
      if (chance(80)) core_->on_node_lost(kNode);
      return;
    case 3:
      if (chance(50)) node_.lose_containers();
      return;
    case 4: return clock_.jump_utc(std::chrono::hours{random_.below(3) == 0 ? 26 : -3});
    case 5: node_.starts_hang = !node_.starts_hang && chance(50); return;
    case 6: return advance(chance(20) ? 9'000'000 : 120'000);
    default:  // the link breaks: what was on it is gone
      to_node_.clear();
      to_control_.clear();
      core_->on_node_lost(kNode);
      return;
  }
}

void Simulation::step() {
  ++stats_.steps;
  switch (random_.below(20)) {
    case 0:
    case 1:
    case 2: user_step(); break;
    case 3:
      if (chance(40)) fault_step();
      break;
    case 4: {
      const auto& all = node_.instances();
      if (all.empty()) break;
      auto at = all.begin();
      std::advance(at, static_cast<std::ptrdiff_t>(random_.below(all.size())));
      if (at->second.runs.contains(at->second.current)) {
        node_.exit(at->first, static_cast<int>(random_.below(3)));
      }
      break;
    }
    case 5:
    case 6:
    case 7: advance(5'000); break;
    case 8: advance(200'000); break;
    case 9:
    case 10: core_->tick(); break;
    case 11:
    case 12: node_.step(); break;
    case 13:
    case 14: send_desired(); break;
    case 15:
    case 16: send_observed(); break;
    default: exchange(true); break;
  }
  if (chance(50)) flush();
}

const ModelNode::Run* Simulation::true_run(const RunRow& run) const {
  const auto instance = node_.instances().find(run.instance);
  if (instance == node_.instances().end()) return nullptr;
  const auto found = instance->second.runs.find(run.id);
  return found == instance->second.runs.end() ? nullptr : &found->second;
}

std::string Simulation::audit_step() const {
  if (const auto good = core_->check_invariants(); !good.ok()) return good.error().message();
  if (node_.doubly_held > 0) return "a card was granted to a second run at the node";
  for (const auto& [id, instance] : node_.instances()) {
    int alive = 0;
    for (const auto& [run_id, run] : instance.runs) {
      if (run.starts > 1)
        return fmt::format("run {} was started {} times", run_id.str(), run.starts);
      alive += run.phase == RunPhase::kEnded ? 0 : 1;
    }
    if (alive > 1) return fmt::format("instance {} has {} runs alive", id.str(), alive);
  }
  return {};
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

// The charge of each run against the node's own history of it.
std::string Simulation::audit_runs() const {
  for (const auto& [id, run] : store_.all_runs()) {
    const ModelNode::Run* truth = true_run(run);
    const std::int64_t now_ms =
        truth == nullptr || truth->starts == 0 ? 0
        : truth->phase == RunPhase::kEnded
            ? truth->ran_ms
            : std::chrono::duration_cast<Millis>(clock_.steady_now() - truth->ready).count();
    const std::int64_t most = charge_micro(run.price_micro, run.gpu_count, now_ms);
    if (run.settled_micro > most) {
      return fmt::format("run {}: {} charged, {} used", id, run.settled_micro, most);
    }
    const bool whole = run.state == RunState::kEnded && run.outcome != Outcome::kLost &&
                       run.outcome != Outcome::kStartFailed && run.stop != StopBy::kPlatform;
    if (whole && most - run.settled_micro > charge_micro(run.price_micro, run.gpu_count, kLateMs)) {
      return fmt::format(
          "run {}: {} charged of {} used ({}, {} x {}, {} ms told, {} ms ran, by {})", id,
          run.settled_micro, most, to_string(*run.outcome), run.gpu_count, run.price_micro,
          run.running_ms, now_ms, run.stop ? to_string(*run.stop) : "itself");
    }
    if (truth != nullptr && truth->phase == RunPhase::kRunning && run.price_micro > 0 &&
        run.state != RunState::kEnded &&
        clock_.steady_now() >= truth->lease_end + Millis(kLateMs)) {
      continue;  // the node's next step ends it
    }
    const std::int64_t paid =
        paid_ms(run.price_micro, run.gpu_count, run.settled_micro + run.hold_micro);
    if (run.state != RunState::kEnded && truth != nullptr && truth->phase == RunPhase::kRunning &&
        std::chrono::duration_cast<Millis>(truth->lease_end - truth->ready).count() >
            paid + kLateMs) {
      return fmt::format("run {}: leased beyond what is held", id);
    }
  }
  return {};
}

// No more faults: everything that waits must end, and released things must be gone.
std::string Simulation::drain() {
  store_.fail_at(0, false);
  node_.starts_hang = false;
  flush();
  for (int round = 0; round < 400; ++round) {
    if (round == 100) {
      for (const auto& endpoint : core_->endpoints()) {
        for (const auto& owner : accounts_) {
          (void)core_->release(kUser, owner, endpoint.instance.str());
        }
      }
    }
    core_->tick();
    send_desired();
    exchange(false);
    node_.step();
    send_observed();
    exchange(false);
    flush();
    clock_.advance(Millis(500));
    if (auto broken = audit_step(); !broken.empty()) return broken;
  }
  return all_at_rest();
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
  for (const auto& [id, instance] : node_.instances()) {
    if (!instance.destroyed) return fmt::format("instance {} is orphaned at the node", id.str());
  }
  for (const auto& [id, run] : store_.all_runs()) {
    if (run.state != RunState::kEnded || !run.outcome) return fmt::format("run {} never ended", id);
  }
  for (const auto& type : core_->gpu_types()) {
    if (type.free != type.total) return fmt::format("a card of {} is not free", type.name);
  }
  return {};
}

std::string Simulation::run(std::int64_t steps) {
  for (std::int64_t i = 0; i < steps; ++i) {
    step();
    if (auto broken = audit_step(); !broken.empty()) {
      return fmt::format("step {}: {}", i, broken);
    }
    if (i % 20 != 0) continue;
    flush();
    for (auto broken : {audit_money(), audit_runs()}) {
      if (!broken.empty()) return fmt::format("step {}: {}", i, broken);
    }
  }
  auto broken = drain();
  if (broken.empty()) broken = audit_money();
  if (broken.empty()) broken = audit_runs();
  stats_.runs = static_cast<std::int64_t>(store_.all_runs().size());
  stats_.entries = static_cast<std::int64_t>(store_.all_entries().size());
  return broken.empty() ? broken : fmt::format("at the end: {}", broken);
}

}  // namespace autodl::sim
