// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// ModelNode: a node in a few lines, for tests of the core and the simulation. It keeps the node's
// promises (a run's command at most once, ended proven, lease enforced, tombstones alone delete),
// is driven by the test's clock, and can lose its process, its machine and its containers.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "model/desired.hpp"
#include "model/observed.hpp"

namespace autodl::testing_support {

class ModelNode {
 public:
  struct Run {
    DesiredRun told;
    RunPhase phase = RunPhase::kStarting;
    SteadyTime ready{};
    std::int64_t ready_utc_ms = 0;
    SteadyTime lease_end{};
    std::int64_t ran_ms = 0;  // once ended
    RunResult result;
    int starts = 0;  // of the command
  };
  struct Instance {
    DesiredInstance told;
    bool disk = false;
    bool destroyed = false;
    std::map<RunId, Run> runs;  // all it ever had: what an auditor asks
    RunId current;
  };

  ModelNode(const Clock& clock, std::vector<ObservedCard> cards)
      : clock_(clock), cards_(std::move(cards)) {}

  void on_desired(const DesiredSet& set) {
    if (set.epoch < epoch_ || (set.epoch == epoch_ && set.revision < revision_)) return;
    epoch_ = set.epoch;
    revision_ = set.revision;
    for (const auto& told : set.instances) take(told);
  }

  // One step of everything that is under way: starts get ready, stops end, leases run out.
  void step() {
    for (auto& [id, instance] : instances_) {
      if (!images_broken && !instance.destroyed) instance.disk = true;
      const auto found = instance.runs.find(instance.current);
      if (found == instance.runs.end()) continue;
      Run& run = found->second;
      if (run.phase == RunPhase::kStarting && !starts_hang) become_ready(run);
      if (run.phase == RunPhase::kRunning && clock_.steady_now() >= run.lease_end) {
        end(run, StopBy::kLease, {}, run.lease_end);
      }
      if (run.phase == RunPhase::kStopping) end(run, run.told.stop->by, {}, clock_.steady_now());
    }
    for (auto& [id, instance] : instances_) {
      if (instance.told.presence != Presence::kReleased || instance.destroyed) continue;
      const auto found = instance.runs.find(instance.current);
      if (found != instance.runs.end() && found->second.phase != RunPhase::kEnded) {
        end(found->second, StopBy::kUser, {}, clock_.steady_now());
      }
      instance.destroyed = true;
      instance.disk = false;
    }
  }

  // The command of an instance's run ends by itself.
  void exit(const InstanceId& id, int code) {
    Run& run = instances_.at(id).runs.at(instances_.at(id).current);
    if (run.phase == RunPhase::kRunning) end(run, std::nullopt, code, clock_.steady_now());
  }
  // Its process died and came back: what it had taken in counts from nothing again.
  void restart_process() { revision_ = 0; }

  // The machine's containers are gone (a reboot): what was started is lost.
  void lose_containers() {
    for (auto& [id, instance] : instances_) {
      const auto found = instance.runs.find(instance.current);
      if (found == instance.runs.end() || found->second.phase == RunPhase::kEnded) continue;
      Run& run = found->second;
      const bool started = run.starts > 0;
      end(run, std::nullopt, {}, std::min(clock_.steady_now(), run.lease_end));
      run.result = {};
      run.result.started = started;
      run.result.lost = started;
      run.result.start_failed = !started;
    }
  }

  ObservedSet observed() const {
    ObservedSet set;
    set.node = NodeId("local");
    set.boot_id = "boot";
    set.desired_revision = revision_;
    set.simulated_cards = true;
    std::map<CardId, InstanceId> holders;
    for (const auto& [id, instance] : instances_) {
      set.instances.push_back(see(instance));
      const auto& run = set.instances.back().run;
      if (run && run->phase != RunPhase::kEnded) {
        for (const auto& card : run->cards) holders[card] = id;
      }
    }
    set.cards = cards_;
    for (auto& card : set.cards) {
      const auto holder = holders.find(card.id);
      if (holder == holders.end()) continue;
      card.health = CardHealth::kHeld;
      card.holder = holder->second;
    }
    return set;
  }

  std::map<InstanceId, Instance>& instances() { return instances_; }
  const std::map<InstanceId, Instance>& instances() const { return instances_; }
  bool images_broken = false;
  bool starts_hang = false;
  int doubly_held = 0;  // a grant of a card that another live run has: never

 private:
  void take(const DesiredInstance& told) {
    Instance& instance = instances_[told.id];
    if (instance.destroyed) return;
    instance.told = told;
    if (!told.run) return;
    const auto known = instance.runs.find(told.run->id);
    if (known == instance.runs.end()) {
      begin(instance, *told.run);
      return;
    }
    Run& run = known->second;
    if (run.phase != RunPhase::kEnded && run.starts > 0 && clock_.steady_now() >= run.lease_end) {
      end(run, StopBy::kLease, {}, run.lease_end);  // over before this word came
    }
    if (run.phase == RunPhase::kEnded) return;
    run.told = *told.run;
    run.lease_end = clock_.steady_now() + Millis(told.run->paid_until_ms);
    if (told.run->stop && run.phase != RunPhase::kStopping) {
      if (run.phase == RunPhase::kStarting) {
        end(run, told.run->stop->by, {}, clock_.steady_now());
      } else {
        run.phase = RunPhase::kStopping;
      }
    }
  }

  void begin(Instance& instance, const DesiredRun& told) {
    if (told.stop) {  // it never takes a card
      Run& run = instance.runs[told.id];
      instance.current = told.id;
      run.told = told;
      return end(run, told.stop->by, {}, clock_.steady_now());
    }
    for (const auto& [id, other] : instances_) {
      for (const auto& [run_id, run] : other.runs) {
        if (run.phase == RunPhase::kEnded) continue;
        for (const auto& card : told.cards) {
          for (const auto& held : run.told.cards) doubly_held += card == held ? 1 : 0;
        }
      }
    }
    Run& run = instance.runs[told.id];
    instance.current = told.id;
    run.told = told;
    run.lease_end = clock_.steady_now() + Millis(told.paid_until_ms);
  }

  void become_ready(Run& run) {
    run.phase = RunPhase::kRunning;
    run.ready = clock_.steady_now();
    run.ready_utc_ms = to_unix_ms(clock_.utc_now());
    ++run.starts;
  }

  void end(Run& run, std::optional<StopBy> by, std::optional<int> code, SteadyTime at) {
    run.ran_ms = running_ms(run, at);
    run.result.started = run.starts > 0;
    run.result.start_failed = run.starts == 0;
    run.result.stopped_by = by;
    run.result.exit_code = code;
    run.phase = RunPhase::kEnded;
  }

  std::int64_t running_ms(const Run& run, SteadyTime at) const {
    if (run.starts == 0) return 0;
    if (run.phase == RunPhase::kEnded) return run.ran_ms;
    // It ends at the lease, however late the step that sees to it; which may be before it was
    // ready.
    const auto ran = std::min(at, run.lease_end) - run.ready;
    return std::max<std::int64_t>(std::chrono::duration_cast<Millis>(ran).count(), 0);
  }

  ObservedInstance see(const Instance& instance) const {
    ObservedInstance out;
    out.id = instance.told.id;
    out.destroyed = instance.destroyed;
    out.image = images_broken ? ImageState::kFailed : ImageState::kReady;
    if (images_broken) out.problem = "pull image: no such image";
    out.image_digest = "sha256:1";
    out.disk = instance.disk ? DiskState::kReady : DiskState::kNone;
    out.host_key = "ssh-ed25519 HOST";
    const auto found = instance.runs.find(instance.current);
    if (found == instance.runs.end()) return out;
    const Run& run = found->second;
    ObservedRun seen;
    seen.id = found->first;
    seen.phase = run.phase;
    if (run.starts > 0) seen.ready_utc_ms = run.ready_utc_ms;
    seen.running_ms = running_ms(run, clock_.steady_now());
    if (run.phase != RunPhase::kEnded) seen.cards = run.told.cards;
    if (run.phase == RunPhase::kEnded) seen.result = run.result;
    out.run = seen;
    return out;
  }

  const Clock& clock_;
  std::vector<ObservedCard> cards_;
  std::map<InstanceId, Instance> instances_;
  std::uint64_t epoch_ = 0;
  std::uint64_t revision_ = 0;
};

}  // namespace autodl::testing_support
