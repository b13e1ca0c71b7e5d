// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What nodes see, the passing of time, and the queue. Level-triggered: every step looks at the
// whole of what is known and may be repeated.
#include <fmt/format.h>

#include <algorithm>

#include "control/detail/core_state.hpp"

namespace autodl {

void ControlCore::State::take_observed(const ObservedSet& observed) {
  NodeLive& node = nodes[observed.node];
  node.reachable = true;
  node.heard = steady();
  const bool same_boot = node.observed.boot_id == observed.boot_id;
  // A set that was overtaken by a newer one says nothing new.
  if (same_boot && observed.desired_revision < node.observed.desired_revision) return;
  if (!same_boot) touch_desired();
  node.observed = observed;
  node.index.clear();
  std::set<InstanceId> unknown;
  for (std::size_t i = 0; i < observed.instances.size(); ++i) {
    const auto& seen = observed.instances[i];
    const auto known = instances.find(seen.id);
    if (known == instances.end() || known->second.node != observed.node) {
      unknown.insert(seen.id);  // kept by the node and shown to the operator
      continue;
    }
    node.index[seen.id] = i;
  }
  node.unknown = std::move(unknown);
  take_cards(observed);
  for (const auto& [id, index] : node.index) {
    take_instance(instances.at(id), observed.instances[index]);
  }
  for (const auto& id : std::set<RunId>(active)) {
    RunRow& run = runs.at(id);
    if (instances.at(run.instance).node != observed.node || run.state == RunState::kQueued) {
      continue;
    }
    take_run(run, observed_run(run), observed.desired_revision);
    step_run(run);
  }
  lift_fences(observed);
  finish_shrinks();
  finish_releases();
  schedule();
}

void ControlCore::State::take_instance(InstanceRow& instance, const ObservedInstance& seen) {
  if (instance.state == InstanceState::kReleased) return;
  if (seen.image == ImageState::kReady && !instance.image_ready) {
    change(instance).image_ready = true;
    if (instance.image_digest.empty() && !seen.image_digest.empty()) {
      instance.image_digest = seen.image_digest;
      touch_desired();  // pinned from here on
    }
    emit(instance, {},
         {"image_ready", fmt::format("image {} is there", instance.image_resolved),
          json_object({{"digest", instance.image_digest}})});
  }
  if (!seen.host_key.empty() && seen.host_key != instance.host_key) {
    change(instance).host_key = seen.host_key;
  }
  if (seen.disk == DiskState::kReady && !instance.disk_ready) {
    change(instance).disk_ready = true;
    emit(instance, {}, {"disk_ready", "the disk is made: files can be uploaded"});
  }
  const bool bad = seen.image == ImageState::kFailed || seen.disk == DiskState::kFailed;
  RunRow* run = active_run(instance);
  if (bad && run != nullptr && run->state == RunState::kQueued) {
    RunResult result;
    result.start_failed = true;
    result.reason = seen.problem;
    end_run(*run, result);
    change(instance).remedy = seen.remedy;
  } else if (bad && run == nullptr && instance.reason != seen.problem && !instance.release_asked) {
    change(instance).reason = seen.problem;
    instance.remedy = seen.remedy;
    emit(instance, {}, {"warning", seen.problem});
  } else if (!bad && run == nullptr && instance.state == InstanceState::kCreated &&
             !instance.release_asked && !instance.reason.empty()) {
    change(instance).reason.clear();
    instance.remedy.clear();
  }
}

// Takes in what the node says of a run; nothing of it may go back. taken_in: the desired set that
// the node had then.
void ControlCore::State::take_run(RunRow& run, const ObservedRun* seen, std::uint64_t taken_in) {
  RunLive& info = live[run.id];
  const bool begun = seen != nullptr && seen->phase != RunPhase::kAbsent;
  if (run.state == RunState::kStarting && (!begun || seen->phase == RunPhase::kStarting)) {
    info.observed_at = steady();
  }
  if (!begun) {
    // Before it has taken the run (or its stop) in, the node can't but lack it.
    if (!info.absent_since && taken_in >= info.told_revision) info.absent_since = steady();
    return;
  }
  info.absent_since.reset();
  if (seen->phase == RunPhase::kRunning || seen->phase == RunPhase::kStopping ||
      seen->phase == RunPhase::kEnded) {
    // A repeated message must not make the run look younger: only growth moves the anchor.
    if (seen->running_ms > run.running_ms || info.observed_at == SteadyTime{}) {
      run.running_ms = std::max(run.running_ms, seen->running_ms);
      info.observed_at = steady();
    }
    info.observed_running = seen->phase == RunPhase::kRunning;
    if (seen->ready_utc_ms && !run.ready_at) {
      change(run).ready_at = UtcTime(Millis(*seen->ready_utc_ms));
    }
  }
}

RunTimes ControlCore::State::times_of(const RunRow& run) {
  const auto ms = [&](SteadyTime since) {
    return std::int64_t{std::chrono::duration_cast<Millis>(steady() - since).count()};
  };
  RunLive& info = live[run.id];
  const NodeLive* node = node_of(instances.at(run.instance));
  RunTimes times;
  times.starting_ms = ms(info.starting_since);
  times.start_limit_ms = config.start_limit.count();
  times.running_ms = estimate_ms(run);
  times.max_runtime_ms = max_runtime_ms(run);
  const bool reachable = node != nullptr && node->reachable;
  if (!reachable) info.absent_since.reset();
  if (info.absent_since) times.absent_ms = ms(*info.absent_since);
  if (!reachable) {
    const auto past = ms(info.lease_until);
    if (past >= 0) times.silent_past_lease_ms = past;
  }
  return times;
}

void ControlCore::State::step_run(RunRow& run) {
  if (run.state == RunState::kQueued || run.state == RunState::kEnded) return;
  const ObservedRun* seen = observed_run(run);
  InstanceRow& instance = instances.at(run.instance);
  const RequestContext platform{"", Actor::kPlatform};
  switch (decide_run(run, seen, times_of(run))) {
    case RunStep::kNothing: return;
    case RunStep::kBecomeRunning: return become_running(run, *seen);
    case RunStep::kBecomeStopping:
      change(run).state = RunState::kStopping;
      set_state(instance, InstanceState::kStopping, "ending");
      return;
    case RunStep::kEnd: return end_run(run, seen->result.value_or(RunResult{}));
    case RunStep::kStartTimedOut:
      change(run).start_timed_out = true;
      run.reason = fmt::format("it was not ready within {} s", config.start_limit.count() / 1'000);
      return ask_stop(platform, instance, StopBy::kPlatform, run.reason);
    case RunStep::kRuleStop:
      return ask_stop(platform, instance, StopBy::kRule, "max_runtime is over");
    case RunStep::kLose: {
      RunResult result;
      result.lost = true;
      const bool silent = !nodes.contains(instance.node) || !nodes.at(instance.node).reachable;
      result.reason = silent ? "the node is silent for longer than the run was paid for"
                             : "the node no longer has the run";
      return end_run(run, result);
    }
  }
}

void ControlCore::State::become_running(RunRow& run, const ObservedRun& seen) {
  InstanceRow& instance = instances.at(run.instance);
  change(run).state = RunState::kRunning;
  if (!run.ready_at) run.ready_at = seen.ready_utc_ms ? UtcTime(Millis(*seen.ready_utc_ms)) : now();
  set_state(instance, InstanceState::kRunning);
  emit(instance, run.id, {"running", "running: the bill counts from here"});
  if (instance.command) emit(instance, run.id, {"command_started", "the command was started"});
}

// Charges, gives back what is left, writes the intervals, frees the cards. Last.
void ControlCore::State::close_run(RunRow& run) {
  if (run.running_ms > 0 && !run.ready_at) change(run).ready_at = now();
  const std::int64_t billed = billed_ms(run, run.running_ms);
  const bool failed_start = run.outcome == Outcome::kStartFailed || run.start_timed_out;
  settle(run, true);
  if (run.running_ms > 0) {
    const UtcTime from = run.ready_at.value_or(now());
    IntervalRow row{run.id, 1, from, billed, true, ""};
    if (billed > 0) {
      batch.intervals.push_back(row);
      intervals[run.id].push_back(row);
    }
    if (billed < run.running_ms) {
      const bool outage = failed_start || run.stop == StopBy::kPlatform;
      const std::string why = failed_start ? "the start failed"
                              : outage     ? "the platform was stopping it"
                                           : "beyond what was paid for";
      if (outage) credit_outage(run, why);
      row = {run.id, 2, from + Millis(billed), run.running_ms - billed, false, why};
      batch.intervals.push_back(row);
      intervals[run.id].push_back(row);
    }
  }
  const bool granted = run.state != RunState::kQueued;
  change(run).state = RunState::kEnded;
  run.ended_at = now();
  active.erase(run.id);
  live.erase(run.id);
  queue.erase(run.id);
  touch_desired();
  if (granted) raise_fence(run);
}

void ControlCore::State::raise_fence(const RunRow& run) {
  const ObservedRun* seen = observed_run(run);
  if (seen != nullptr && seen->phase == RunPhase::kEnded) return;  // never begun again there
  fences.push_back({instances.at(run.instance).node, run.instance, run.id, run.cards, revision});
}

void ControlCore::State::lift_fences(const ObservedSet& observed) {
  std::erase_if(fences, [&](const Fence& fence) {
    if (fence.node != observed.node || observed.desired_revision < fence.revision) return false;
    const ObservedInstance* seen = observed_of(instances.at(fence.instance));
    return seen == nullptr || !seen->run || seen->run->id != fence.run ||
           seen->run->phase == RunPhase::kEnded || seen->run->phase == RunPhase::kAbsent;
  });
}

void ControlCore::State::end_run(RunRow& run, const RunResult& result) {
  InstanceRow& instance = instances.at(run.instance);
  const std::int64_t rule = max_runtime_ms(run);
  const bool reached = rule > 0 && run.running_ms + 1'000 >= rule;
  const Ending end = ending_of(run, result, instance.command.has_value(), reached);
  change(run).outcome = end.outcome;
  run.reason = end.reason;
  run.remedy = end.remedy;
  if (result.exit_code) run.exit_code = *result.exit_code;
  if (result.signal) run.signal = *result.signal;
  for (const auto& card : run.cards)
    card_fact("freed", instance.node, CardId(card), &run, end.reason);
  close_run(run);
  set_state(instance, end.state, end.reason, end.remedy);
  const char* type = end.outcome == Outcome::kLost         ? "lost"
                     : end.state == InstanceState::kFailed ? "failed"
                     : result.exit_code || result.signal   ? "exited"
                                                           : "stopped";
  std::string data = json_object({{"outcome", to_string(end.outcome)}});
  if (run.exit_code) {
    data =
        fmt::format(R"({{"outcome":"{}","exit_code":{}}})", to_string(end.outcome), *run.exit_code);
  } else if (run.signal) {
    data = fmt::format(R"({{"outcome":"{}","signal":{}}})", to_string(end.outcome), *run.signal);
  }
  emit(instance, run.id, {type, end.reason.empty() ? "the run is over" : end.reason, data});
  if (std::string_view(type) == "exited") {
    emit(instance, run.id, {"stopped", "stopped: the disk is kept, the cards are free"});
  }
  if (end.outcome == Outcome::kLost && !run.stop) restart_lost(instance, run);
}

// A lost run is run again only where the user chose so, and as a run of its own.
void ControlCore::State::restart_lost(InstanceRow& instance, const RunRow& lost) {
  if (instance.restart != RestartPolicy::kOnLoss || instance.release_asked) return;
  const RunId lost_id = lost.id;
  const Status again = start({"", Actor::kPlatform}, instance);
  if (!again.ok()) {
    emit(instance, lost_id,
         {"warning", fmt::format("not started again: {}", again.error().message())});
  }
}

void ControlCore::State::end_queued(const RequestContext& context, RunRow& run) {
  InstanceRow& instance = instances.at(run.instance);
  change(run).outcome = Outcome::kCancelled;
  run.stop = StopBy::kUser;
  run.reason = "cancelled before it began";
  close_run(run);
  set_state(instance, InstanceState::kStopped, run.reason);
  emit(instance, run.id, {"stopped", run.reason, "{}", context.actor, context.request_id});
}

// ---- the queue

std::string ControlCore::State::why_not_ready(const RunRow& run) const {
  const InstanceRow& instance = instances.at(run.instance);
  const NodeLive* node = node_of(instance);
  if (run.hold_micro < hour_price(run)) return "waiting for the funds that other runs give back";
  if (accounts.at(instance.account).disabled) return "the account is disabled";
  if (node == nullptr || !node->reachable) return "the node is not reachable";
  if (auto planned = drain_reason(instance.node); !planned.empty()) return planned;
  if (!instance.image_ready) return "the image is being pulled";
  if (!instance.disk_ready) return "the disk is being made";
  const ObservedInstance* seen = observed_of(instance);
  const bool fenced = std::any_of(fences.begin(), fences.end(), [&](const Fence& fence) {
    return fence.instance == instance.id;
  });
  if (seen == nullptr || fenced || node->observed.desired_revision < first_revision) {
    return "the node has not taken the instance in yet";
  }
  if (seen->run && seen->run->id != run.id && seen->run->phase != RunPhase::kEnded &&
      seen->run->phase != RunPhase::kAbsent) {
    return "the node is still ending an earlier run";
  }
  return {};
}

std::vector<QueueItem> ControlCore::State::waiting() const {
  std::vector<const RunRow*> rows;
  for (const auto& id : active) {
    const RunRow& run = runs.at(id);
    if (run.state == RunState::kQueued) rows.push_back(&run);
  }
  std::sort(rows.begin(), rows.end(), [](const RunRow* a, const RunRow* b) {
    return a->requested_at != b->requested_at ? a->requested_at < b->requested_at : a->id < b->id;
  });
  std::vector<QueueItem> items;
  for (const RunRow* run : rows) {
    const auto waited = std::chrono::duration_cast<Millis>(now() - run->requested_at).count();
    items.push_back({run->id, instances.at(run->instance).node, run->gpu_type, run->gpu_count,
                     why_not_ready(*run), run->account, accounts.at(run->account).group, waited});
  }
  return items;
}

// Free: the node reports it free, no row holds it, and no set under way may still grant it.
std::vector<FreeCards> ControlCore::State::free_cards() const {
  std::set<std::string> held;
  for (const auto& id : active) {
    const auto& cards = runs.at(id).cards;
    held.insert(cards.begin(), cards.end());
  }
  for (const auto& fence : fences) held.insert(fence.cards.begin(), fence.cards.end());
  std::map<std::pair<NodeId, std::string>, FreeCards> by_type;
  for (const auto& [id, node] : nodes) {
    for (const auto& card : node.observed.cards) {
      FreeCards& group = by_type[{id, card.type}];
      group.node = id;
      group.gpu_type = card.type;
      ++group.total;
      if (node.reachable && card.health == CardHealth::kFree && !held.contains(card.id.str()) &&
          !cordoned(card.id)) {
        group.cards.push_back(card.id);
      }
    }
  }
  std::vector<FreeCards> out;
  for (auto& [key, group] : by_type) out.push_back(std::move(group));
  return out;
}

void ControlCore::State::schedule() {
  const auto items = waiting();
  if (items.empty()) return;
  for (auto& answer : placement.place(items, free_cards(), holdings())) {
    RunRow& run = runs.at(answer.run);
    if (answer.granted) {
      grant(run, answer.cards);
    } else {
      queue[answer.run] = std::move(answer);
    }
  }
}

void ControlCore::State::grant(RunRow& run, const std::vector<CardId>& cards) {
  InstanceRow& instance = instances.at(run.instance);
  queue.erase(run.id);
  change(run).state = RunState::kStarting;
  run.granted_at = now();
  run.cards.clear();
  for (const auto& card : cards) run.cards.push_back(card.str());
  RunLive& info = live[run.id];
  info.starting_since = info.observed_at = steady();
  info.lease_until = steady() + Millis(lease_ms(run));
  set_state(instance, InstanceState::kStarting);
  if (!cards.empty()) {
    emit(instance, run.id,
         {"card_granted", fmt::format("{} x {}", cards.size(), run.gpu_type),
          json_object({{"cards", fmt::format("{}", fmt::join(run.cards, ","))}})});
  }
  for (const auto& card : cards) card_fact("granted", instance.node, card, &run);
  emit(instance, run.id, {"starting", "starting"});
  touch_desired();
  info.told_revision = revision;
}

void ControlCore::State::finish_releases() {
  for (auto& [id, row] : instances) {
    if (!row.release_asked || row.state == InstanceState::kReleased) continue;
    if (active_run(row) != nullptr) continue;
    const ObservedInstance* seen = observed_of(row);
    if (seen == nullptr || !seen->destroyed) continue;
    count_storage(true);
    ports_used.erase(row.port);
    slots_used.erase(row.slot);
    change(row).port = 0;
    row.slot = -1;
    set_state(row, InstanceState::kReleased);
    emit(row, {}, {"released", "released: the disk is deleted"});
    touch_desired();
  }
}

void ControlCore::State::tick() {
  for (auto& [id, node] : nodes) {
    if (node.reachable && steady() - node.heard > config.node_silence) node.reachable = false;
  }
  stop_disabled();
  for (const auto& id : std::set<RunId>(active)) step_run(runs.at(id));
  finish_shrinks();
  fund_waiting();
  renew();
  schedule();
}

// ---- what the node is told

void ControlCore::State::add_desired_run(const InstanceRow& instance, DesiredInstance& out) {
  const ObservedInstance* seen = observed_of(instance);
  const RunRow* run = active_run(instance);
  const bool live_run = run != nullptr && run->state != RunState::kQueued;
  if (!live_run) {
    // A run that is over here (lost while the node was silent) and still lives there: end it.
    if (seen == nullptr || !seen->run || seen->run->phase == RunPhase::kEnded) return;
    const auto old = runs.find(seen->run->id);
    if (old == runs.end() || old->second.state != RunState::kEnded) return;
    run = &old->second;
  }
  DesiredRun told;
  told.id = run->id;
  told.attempt = static_cast<std::uint32_t>(run->attempt);
  for (const auto& card : run->cards) told.cards.emplace_back(card);
  told.command = instance.command;
  told.workdir = instance.workdir;
  told.env = instance.env;
  if (live_run) {
    told.paid_until_ms = lease_ms(*run);
    if (run->stop) told.stop = StopRequest{*run->stop, config.stop_grace_ms};
    RunLive& info = live[run->id];
    info.lease_until = std::max(info.lease_until, steady() + Millis(told.paid_until_ms));
  } else {
    told.stop = StopRequest{StopBy::kPlatform, config.stop_grace_ms};
  }
  out.run = std::move(told);
}

DesiredSet ControlCore::State::desired_set(const NodeId& node) {
  DesiredSet set{cluster, epoch, revision, {}};
  for (const auto& [id, row] : instances) {
    if (row.node != node || row.state == InstanceState::kReleased) continue;
    DesiredInstance out;
    out.id = id;
    out.name = row.name;
    out.image = row.image_resolved;
    out.image_digest = row.image_digest;
    out.disk_bytes = row.disk_bytes;
    out.slot = static_cast<std::uint32_t>(row.slot);
    out.authorized_keys = row.ssh_keys;
    for (const auto& [key_id, key] : ssh_keys) {
      if (key.account == row.account && !key.removed) out.authorized_keys.push_back(key.public_key);
    }
    add_desired_run(row, out);
    const bool tombstone = row.release_asked && active.find(row.run) == active.end();
    if (tombstone) out.presence = Presence::kReleased;
    set.instances.push_back(std::move(out));
  }
  return set;
}

}  // namespace autodl
