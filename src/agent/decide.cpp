// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "agent/decide.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "agent/run_result.hpp"

namespace autodl {

namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kGraceMsMax = 600'000;
constexpr milliseconds kKillAfterGrace{1'500};
constexpr milliseconds kKillAgain{2'000};
constexpr milliseconds kEndAfterCommand{10'000};  // init ends soon after its command
constexpr milliseconds kExitFileWait{2'000};
constexpr milliseconds kProveLimit{10'000};
constexpr std::int64_t kLeaseLongerMs = 30'000;  // journalled when it grew by this
constexpr std::int64_t kLeaseShorterMs = 1'000;
constexpr std::int64_t kLeaseMsMax = std::int64_t{400} * 86'400'000;

bool is_desired_run(const DesiredInstance* desired, const RunFacts& run) {
  return desired != nullptr && desired->run && desired->run->id == run.id;
}

std::int64_t ms_at_end(const RunFacts& run, const Live& live, const Context& context) {
  EndTime end;
  end.seen = live.exit_at;
  if (live.end) end.exited_utc_ms = live.end->exited_utc_ms;
  end.now = context.now;
  end.utc_now_ms = context.utc_now_ms;
  end.boot_id = context.boot_id;
  return running_ms_at_end(run, end);
}

// One look at an instance; the members are the arguments of next_action.
struct Step {
  const InstanceId& id;
  const DesiredInstance* desired;
  const InstanceFacts& facts;
  const Live& live;
  const Context& context;

  Action make(ActionKind kind) const {
    Action action;
    action.kind = kind;
    action.instance = id;
    action.slot = facts.disk_made || desired == nullptr ? facts.slot : desired->slot;
    if (facts.run) action.run = facts.run->id;
    return action;
  }
  Fact fact(FactKind kind, const RunId& run) const {
    Fact made;
    made.kind = kind;
    made.run = run;
    return made;
  }
  bool since(const std::optional<SteadyTime>& moment, milliseconds time) const {
    return !moment || context.now - *moment >= time;
  }

  std::optional<Action> begin_run() const;
  std::optional<Action> prepare() const;
  std::optional<Action> bring_forward(const RunFacts& run) const;
  std::optional<Action> end_run(const RunFacts& run, const StopWanted& stop) const;
  std::optional<Action> look(const RunFacts& run) const;
  std::optional<Action> clean_up(const RunFacts& run) const;
  std::optional<Action> record_lease(const RunFacts& run) const;
  Action record_exit(const RunFacts& run) const;
  Action refuse(const DesiredRun& wanted, const std::string& reason,
                std::optional<StopBy> by) const;
};

// Image, disk and root, which exist from the instance's creation on.
std::optional<Action> Step::prepare() const {
  if (!facts.disk_made) {
    if (!live.image) {
      auto action = make(ActionKind::kEnsureImage);
      action.reference = desired->image;
      action.digest = desired->image_digest;
      return action;
    }
    auto action = make(ActionKind::kEnsureDisk);
    action.disk_bytes = desired->disk_bytes;
    action.digest = live.image->digest;
    action.image_env = live.image->env;
    auto made = fact(FactKind::kDiskMade, RunId{});
    made.slot = desired->slot;
    made.disk_bytes = desired->disk_bytes;
    made.digest = live.image->digest;
    action.after = {std::move(made)};
    return action;
  }
  if (!live.root_ok) {
    auto action = make(ActionKind::kEnsureRoot);
    action.digest = facts.digest;
    return action;
  }
  return std::nullopt;
}

// A run that never begins here is recorded as ended, so that the answer stays the same.
Action Step::refuse(const DesiredRun& wanted, const std::string& reason,
                    std::optional<StopBy> by) const {
  auto action = make(ActionKind::kRecord);
  action.run = wanted.id;
  auto exited = fact(FactKind::kExited, wanted.id);
  exited.result.start_failed = !by.has_value();
  exited.result.stopped_by = by;
  exited.result.reason = reason;
  action.before = {std::move(exited), fact(FactKind::kReleased, wanted.id)};
  return action;
}

std::optional<Action> Step::begin_run() const {
  const auto& wanted = *desired->run;
  if (wanted.stop) return refuse(wanted, "", wanted.stop->by);
  if (!wanted.cards.empty() && !context.cards->seen()) return std::nullopt;
  const auto granted_ok = context.cards->check_grant(id, wanted.cards);
  if (!granted_ok.ok()) return refuse(wanted, granted_ok.error().message(), std::nullopt);
  if (live.container != ContainerPhase::kNone) {
    auto action = make(ActionKind::kRemove);  // of an earlier run, half removed before a restart
    return action;
  }
  auto action = make(ActionKind::kCreate);
  action.run = wanted.id;
  action.cards = wanted.cards;
  action.name = desired->name;
  action.desired = wanted;
  action.keys = desired->authorized_keys;
  auto granted = fact(FactKind::kGranted, wanted.id);
  granted.cards = wanted.cards;
  // With its lease from the first: a node that restarts while control is away must know it.
  auto lease = fact(FactKind::kLease, wanted.id);
  lease.boot_id = context.boot_id;
  lease.lease_end_ms = lease_end_ms(wanted, live.desired_at);
  action.before = {std::move(granted), fact(FactKind::kCreated, wanted.id), std::move(lease)};
  return action;
}

Action Step::record_exit(const RunFacts& run) const {
  auto action = make(ActionKind::kRecord);
  auto exited = fact(FactKind::kExited, run.id);
  exited.result =
      make_run_result(run, live.end, live.start_error, context.split->memory_for(run.cards.size()));
  exited.running_ms = ms_at_end(run, live, context);
  action.before = {std::move(exited)};
  return action;
}

// The container is looked at when it is said to have ended, or when nobody would tell us.
std::optional<Action> Step::look(const RunFacts& run) const {
  const bool blind = !live.connected && run.started;
  const bool ending = live.kill_sent.has_value() || live.stop_sent.has_value();
  const auto every = live.exit_seen   ? milliseconds{20}
                     : live.kill_sent ? milliseconds{300}
                     : ending         ? milliseconds{2'000}
                                      : milliseconds{5'000};
  if (!live.exit_seen && !blind && !ending) return std::nullopt;
  if (!since(live.inspected, every)) return std::nullopt;
  return make(ActionKind::kInspect);
}

std::optional<Action> Step::clean_up(const RunFacts& run) const {
  if (!live.removed) {
    auto action = make(ActionKind::kRemove);
    action.cards = run.cards;
    return action;
  }
  auto released = fact(FactKind::kReleased, run.id);
  // A card that isn't proven free in time is quarantined by its own health, not by this run.
  if (run.cards.empty() || (live.prove_since && since(live.prove_since, kProveLimit))) {
    auto action = make(ActionKind::kRecord);
    action.before = {std::move(released)};
    return action;
  }
  auto action = make(ActionKind::kProve);
  action.cards = run.cards;
  action.after = {std::move(released)};
  return action;
}

std::optional<Action> Step::end_run(const RunFacts& run, const StopWanted& stop) const {
  if (auto inspect = look(run)) return inspect;
  std::vector<Fact> before;
  if (!run.stop_asked) {
    auto asked = fact(FactKind::kStopAsked, run.id);
    asked.by = stop.by;
    asked.shutdown = stop.shutdown;
    before.push_back(std::move(asked));
  }
  if (live.container == ContainerPhase::kCreated) {
    auto action = record_exit(run);  // nothing of it runs: it is only removed
    action.before.insert(action.before.begin(), before.begin(), before.end());
    return action;
  }
  const auto grace = std::clamp<std::int64_t>(stop.grace_ms, 0, kGraceMsMax);
  const bool gently = run.started && !live.kill_sent && live.failures < 3;
  if (gently && !live.stop_sent) {
    auto action = make(live.connected ? ActionKind::kStop : ActionKind::kConnect);
    action.grace_ms = grace;
    action.before = std::move(before);
    action.watch = !live.connected;
    return action;
  }
  if (gently && live.stop_sent &&
      !since(live.stop_sent, milliseconds{live.stop_grace_ms} + kKillAfterGrace)) {
    return std::nullopt;
  }
  if (!since(live.kill_sent, kKillAgain)) return std::nullopt;
  auto action = make(ActionKind::kKill);
  action.before = std::move(before);
  return action;
}

std::optional<Action> Step::record_lease(const RunFacts& run) const {
  if (!run.lease) return std::nullopt;
  if (live.lease_recorded && live.lease_recorded->boot_id == run.lease->boot_id) {
    const auto grown = run.lease->steady_ms - live.lease_recorded->steady_ms;
    if (grown < kLeaseLongerMs && grown > -kLeaseShorterMs) return std::nullopt;
  }
  auto action = make(ActionKind::kRecord);
  auto lease = fact(FactKind::kLease, run.id);
  lease.boot_id = run.lease->boot_id;
  lease.lease_end_ms = run.lease->steady_ms;
  lease.running_ms = running_ms_now(run, context.now, context.boot_id);
  action.before = {std::move(lease)};
  return action;
}

std::optional<Action> Step::bring_forward(const RunFacts& run) const {
  if (run.result) return clean_up(run);
  if (live.end) {
    const bool told = live.end->exit_code || !live.end->exit_record.empty();
    if (!told && !since(live.exit_at, kExitFileWait)) return look(run);
    return record_exit(run);
  }
  const auto stop = stop_wanted(desired, run, live, context);
  if (live.container == ContainerPhase::kNone) {
    const bool began = run.ready || run.started || live.exit_seen;
    if (began || stop || !is_desired_run(desired, run)) {
      if (stop && !run.stop_asked && !began) {
        auto asked = fact(FactKind::kStopAsked, run.id);
        asked.by = stop->by;
        auto action = make(ActionKind::kRecord);
        action.before = {std::move(asked)};
        return action;
      }
      // Before the first desired set a run that has not begun is neither continued nor given up.
      if (!began && !stop && !context.desired_known) return std::nullopt;
      return record_exit(run);
    }
    auto action = make(ActionKind::kCreate);  // again: it was cut off
    action.cards = run.cards;
    action.name = desired->name;
    action.desired = desired->run;
    action.keys = desired->authorized_keys;
    return action;
  }
  if (stop) return end_run(run, *stop);
  if (auto inspect = look(run)) return inspect;
  if (lease_to_shorten(run, live)) return record_lease(run);
  if (live.container == ContainerPhase::kCreated) return make(ActionKind::kStart);
  if (!live.connected) {
    auto action = make(ActionKind::kConnect);
    action.watch = true;
    return action;
  }
  if (!live.go_sent) {
    auto action = make(ActionKind::kGo);
    if (!run.ready) {
      auto ready = fact(FactKind::kReady, run.id);
      ready.boot_id = context.boot_id;
      ready.steady_ms = to_ms(live.ready_at.value_or(context.now));
      ready.utc_ms = to_unix_ms(live.ready_utc);
      action.before.push_back(std::move(ready));
    }
    if (!run.started) action.before.push_back(fact(FactKind::kStarted, run.id));
    return action;
  }
  if (live.ended_at && since(live.ended_at, kEndAfterCommand) && since(live.kill_sent, kKillAgain))
    return make(ActionKind::kKill);
  if (desired != nullptr && desired->authorized_keys != live.keys_sent) {
    auto action = make(ActionKind::kKeys);
    action.keys = desired->authorized_keys;
    return action;
  }
  return record_lease(run);
}

}  // namespace

std::int64_t lease_end_ms(const DesiredRun& run, SteadyTime told_at) {
  return to_ms(told_at) + std::clamp<std::int64_t>(run.paid_until_ms, 0, kLeaseMsMax);
}

bool lease_to_shorten(const RunFacts& run, const Live& live) {
  if (!run.active() || run.result || run.stop_asked || !run.lease) return false;
  if (!live.lease_recorded) return true;
  return live.lease_recorded->boot_id == run.lease->boot_id &&
         live.lease_recorded->steady_ms - run.lease->steady_ms >= kLeaseShorterMs;
}

std::int64_t running_ms_seen(const RunFacts& run, const Live& live, const Context& context) {
  const bool gone = live.container == ContainerPhase::kNone && (run.ready || run.started);
  const bool over = !run.result && (live.exit_seen || live.end || gone);
  return over ? ms_at_end(run, live, context) : running_ms_now(run, context.now, context.boot_id);
}

std::optional<StopWanted> stop_wanted(const DesiredInstance* desired, const RunFacts& run,
                                      const Live& live, const Context& context) {
  const bool wanted_run = is_desired_run(desired, run);
  StopWanted stop;
  if (wanted_run && desired->run->stop) {
    stop.by = desired->run->stop->by;
    stop.grace_ms = desired->run->stop->grace_ms;
  } else if (desired != nullptr && desired->presence == Presence::kReleased) {
    stop.by = StopBy::kUser;
  } else if (live.shutdown) {
    stop.shutdown = true;
  } else if (!live.start_error.empty()) {
    stop.by = StopBy::kPlatform;
  } else if (run.lease && run.lease->boot_id == context.boot_id &&
             to_ms(context.now) >= run.lease->steady_ms && (wanted_run || !context.desired_known)) {
    // Not for a run that control does not know: that is kept and reported, never ended.
    stop.by = StopBy::kLease;
  } else if (!run.stop_asked) {
    return std::nullopt;
  }
  if (run.stop_asked) stop.by = *run.stop_asked;
  return stop;
}

std::optional<Action> next_action(const InstanceId& id, const DesiredInstance* desired,
                                  const InstanceFacts& facts, const Live& live,
                                  const Context& context) {
  const Step step{id, desired, facts, live, context};
  if (facts.run && facts.run->active()) return step.bring_forward(*facts.run);
  if (desired == nullptr) {
    if (facts.destroyed && context.desired_known) return step.make(ActionKind::kForget);
    return std::nullopt;
  }
  if (desired->presence == Presence::kReleased) {
    if (facts.destroyed) return std::nullopt;
    auto action = step.make(ActionKind::kDestroy);
    action.after = {step.fact(FactKind::kDestroyed, RunId{})};
    return action;
  }
  if (facts.destroyed) return std::nullopt;
  const bool wants_run = desired->run && !facts.past.contains(desired->run->id);
  if (wants_run && !live.start_error.empty())
    return step.refuse(*desired->run, live.start_error, std::nullopt);
  if (auto action = step.prepare()) return action;
  if (wants_run) return step.begin_run();
  return std::nullopt;
}

}  // namespace autodl
