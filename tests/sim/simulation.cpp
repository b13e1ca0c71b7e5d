// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "simulation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "wire/set_json.hpp"

namespace autodl::sim {
namespace {

const RequestContext kUser{"sim", Actor::kUser};
const NodeId kNode{"local"};
constexpr Millis kLinkDelayMax{10'000};  // a slower link counts as broken
constexpr Millis kBusySlice{100};
constexpr Millis kIdleSlice{5'000};

}  // namespace

Simulation::Simulation(std::uint64_t seed)
    : random_(seed), ids_(seed ^ 0x5eed), node_(clock_, elapsed_, seed ^ 0xa6e27) {
  config_.prices_micro = {{"RTX 3090", 1'580'000}, {"A100 40GB", 7'777'777}};
  config_.storage_micro_per_gb_day = chance(50) ? 10'000 : 0;
  config_.no_card_micro_per_hour = chance(50) ? 33'333 : 0;
  // Short: silence loses runs and cards are given again; long: money goes from run to run.
  config_.contact_grace = chance(50) ? Millis(std::chrono::hours{2})
                                     : Millis(std::chrono::seconds{60 + random_.below(300)});
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

// The process dies: what was not flushed is gone, and what was on its way to it. What the node's
// end of the link holds already may still be taken in.
void Simulation::crash_core() {
  ++stats_.crashes;
  if (chance(50)) to_node_.clear();
  to_control_.clear();
  open_core();
}

void Simulation::flush() {
  if (core_->flush().ok()) return;
  ++stats_.store_faults;
  crash_core();
}

// ---- the link

void Simulation::send_desired() {
  flush();  // nothing leaves before it is durable
  if (!node_.alive()) return;
  if (auto set = core_->desired_set(kNode)) to_node_.push_back({encode_desired(*set), elapsed_});
}

void Simulation::send_observed() {
  if (auto text = node_.observed()) to_control_.push_back({std::move(*text), elapsed_});
}

template <class F>
void Simulation::deliver(std::deque<Sent>& link, bool faults, const F& take) {
  if (faults && link.size() > 1 && chance(10)) std::swap(link[0], link[1]);
  if (link.empty()) return;
  const auto sent = link.front();
  if (!faults || !chance(5)) link.pop_front();  // else it comes again
  const bool late = elapsed_ - sent.at > kLinkDelayMax;
  if (late || (faults && chance(15))) {
    ++stats_.lost_messages;
    if (late && !link.empty()) link.clear();
    return;
  }
  take(sent.text);
}

void Simulation::observed_arrives(const std::string& text) {
  auto set = decode_observed(text);
  if (!set.ok()) {
    broken_ = fmt::format("an observed set does not decode: {}", set.error().message());
    return;
  }
  core_->on_observed(*set);
}

void Simulation::exchange(bool faults) {
  deliver(to_node_, faults, [&](const std::string& text) { node_.on_desired(text); });
  deliver(to_control_, faults, [&](const std::string& text) { observed_arrives(text); });
  watch_node();
}

// What was on the link is gone. told: control hears of it.
void Simulation::break_link(bool told) {
  to_node_.clear();
  to_control_.clear();
  if (told) core_->on_node_lost(kNode);
}

// A node's process that died takes its link with it.
void Simulation::watch_node() {
  if (node_.alive() == node_up_) return;
  node_up_ = node_.alive();
  if (!node_up_) break_link(chance(80));
}

// ---- time

// The node goes on while time passes, and sees each lease end when it does.
void Simulation::pass(Millis span) {
  int busy_rounds = 0;
  while (span.count() > 0) {
    const bool busy = node_.step(false);
    watch_node();
    busy_rounds = busy ? busy_rounds + 1 : 0;
    Millis slice = !busy || busy_rounds > 200 ? kIdleSlice
                   : busy_rounds > 50         ? kBusySlice * 10
                                              : kBusySlice;
    if (const auto lease = node_.next_lease(); lease && *lease <= slice) {
      slice = std::max(*lease, Millis{1});
      busy_rounds = 0;
    }
    slice = std::min(slice, span);
    clock_.advance(slice);
    elapsed_ += slice;
    span -= slice;
  }
  node_.step(false);
  watch_node();
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
      (void)core_->credit(kUser, account, static_cast<std::int64_t>(random_.below(20'000'000)), "");
      return;
    default: (void)core_->credit(kUser, account, -3'000'000, "correction"); return;
  }
}

void Simulation::restart_machine() {
  ++stats_.reboots;
  node_.reboot();
  watch_node();
  clock_.advance(Millis{30'000});
  elapsed_ += Millis{30'000};
  to_node_.clear();
  crash_core();
}

void Simulation::fault_step() {
  switch (random_.below(14)) {
    case 0: return crash_core();
    case 1: return store_.fail_at(static_cast<std::int64_t>(random_.below(3)) + 1, chance(50));
    case 2: return node_.kill();
    case 3:
      if (chance(40)) restart_machine();
      return;
    case 4: return clock_.jump_utc(std::chrono::hours{random_.below(3) == 0 ? 26 : -3});
    case 5: node_.starts_hang = !node_.starts_hang && chance(30); return;
    case 6: return pass(Millis(random_.below(chance(20) ? 9'000'000 : 120'000) + 1));
    case 7: return break_link(true);
    case 8:
    case 9:
    case 10: return node_.kill_at(static_cast<int>(random_.below(40)) + 1);
    case 11: return node_.fail_once(random_.below(1'000));
    case 12: return node_.soil_card(chance(30));
    default: node_.obeys_stop = chance(70); return;
  }
}

// Something happens inside an instance, or to it.
void Simulation::instance_step() {
  const auto running = node_.running_instances();
  if (running.empty()) return;
  const auto& id = running[random_.below(running.size())];
  switch (random_.below(8)) {
    case 0: return node_.type_shutdown(id);
    case 1: return node_.break_init_link(id);
    case 2:
      if (chance(30)) node_.lose_container(id);
      return;
    default: return node_.end_command(id, random_.below(6));
  }
}

void Simulation::step() {
  ++stats_.steps;
  switch (random_.below(20)) {
    case 0:
    case 1:
    case 2: user_step(); break;
    case 3: fault_step(); break;
    case 4: instance_step(); break;
    case 5:
    case 6:
    case 7: pass(Millis(random_.below(5'000) + 1)); break;
    case 8: pass(Millis(random_.below(chance(20) ? 200'000 : 20'000) + 1)); break;
    case 9:
    case 10: core_->tick(); break;
    case 11:
    case 12:
      if (!node_.alive() && chance(70)) node_.boot();
      node_.step(false);
      break;
    case 13:
    case 14: send_desired(); break;
    case 15:
    case 16: send_observed(); break;
    case 17: beat(); break;
    default: exchange(true); break;
  }
  watch_node();
  if (chance(50)) flush();
}

// What both sides do all the time where nothing fails.
void Simulation::beat() {
  core_->tick();
  send_desired();
  exchange(false);
  pass(Millis{500});
  send_observed();
  exchange(false);
}

// No more faults: everything that waits must end, and released things must be gone.
std::string Simulation::drain() {
  store_.fail_at(0, false);
  node_.kill_at(0);
  node_.boot();
  node_.starts_hang = false;
  node_.obeys_stop = true;
  node_.soil_card(false);
  watch_node();
  flush();
  for (int round = 0; round < 500; ++round) {
    if (round == 200) {
      if (auto orphan = audit_orphans(); !orphan.empty()) return orphan;
      for (const auto& endpoint : core_->endpoints()) {
        for (const auto& owner : accounts_) {
          (void)core_->release(kUser, owner, endpoint.instance.str());
        }
      }
    }
    beat();
    node_.step(true);
    flush();
    if (auto broken = audit_step(); !broken.empty()) return broken;
  }
  return all_at_rest();
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
  stats_.node_crashes = node_.crashes();
  for (const auto& [run, truth] : node_.truths()) stats_.started += truth.started ? 1 : 0;
  return broken.empty() ? broken : fmt::format("at the end: {}", broken);
}

}  // namespace autodl::sim
