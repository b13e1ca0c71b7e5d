// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "agent/run_result.hpp"
#include "base/log.hpp"

namespace autodl {

namespace {

// The journal's name of what concerns the node itself; no instance id is lower case.
constexpr const char* kNodeJournal = "node";
constexpr std::size_t kCompactAt = 200;  // records
constexpr int kCreateFailuresMax = 3;
constexpr std::size_t kEventsMax = 1'000;

// What the caller would have to change, or what another try would not mend.
bool is_final(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::kInvalid:
    case ErrorKind::kNotFound:
    case ErrorKind::kDenied:
    case ErrorKind::kExhausted:
    case ErrorKind::kUnsupported: return true;
    default: return false;
  }
}

std::string with_remedy(const Error& error) {
  return error.remedy().empty() ? error.message()
                                : fmt::format("{}; {}", error.message(), error.remedy());
}

}  // namespace

// ---- start

Status AgentCore::load(const std::vector<FoundInstance>& found) {
  ADL_TRY(journals, journal_.load_all());
  for (const auto& journal : journals) {
    if (journal.name == kNodeJournal) {
      for (const auto& record : journal.records) {
        const auto space = record.find(' ');
        cluster_ = record.substr(0, space);
        epoch_ = std::strtoull(record.c_str() + std::min(space, record.size()), nullptr, 10);
      }
      continue;
    }
    if (!is_ulid(journal.name)) continue;
    const InstanceId id(journal.name);
    auto& instance = instances_[id];
    instance.damage = journal.damage;
    std::vector<Fact> facts;
    for (const auto& record : journal.records) {
      auto fact = decode_fact(record);
      if (!fact.ok()) {
        instance.damage = fact.error().message();
        break;
      }
      facts.push_back(std::move(fact).value());
    }
    absorb(id, instance, facts);
    if (instance.facts.run && instance.facts.run->active())
      instance.live.lease_recorded = instance.facts.run->lease;
    if (!instance.damage.empty()) {
      log_error("agent", "journal of instance {}: {}; it is kept as it is", id.str(),
                instance.damage);
    } else if (journal.records.size() > kCompactAt) {
      std::vector<std::string> records;
      for (const auto& fact : to_facts(instance.facts)) records.push_back(encode_fact(fact));
      ADL_TRY_STATUS(journal_.rewrite(journal.name, records));
    }
  }
  for (const auto& one : found) {
    auto& instance = instances_[one.id];
    instance.live.root_ok = one.mounted;
    instance.live.container = one.container.phase;
    if (one.container.phase == ContainerPhase::kExited) {
      instance.live.end = one.container;
      instance.live.exit_seen = true;
    }
    const auto& run = instance.facts.run;
    if (one.container.phase != ContainerPhase::kNone &&
        (!run || (run->id != one.container.run && run->active())) && instance.damage.empty())
      instance.damage = fmt::format("a container of run '{}' is there that no record tells of",
                                    one.container.run.str());
  }
  return {};
}

// ---- inputs

Status AgentCore::admit(const DesiredSet& set) {
  if (!cluster_.empty() && set.cluster != cluster_)
    return Error(ErrorKind::kDenied, "wrong_cluster",
                 fmt::format("this node belongs to cluster {}, not to {}", cluster_, set.cluster),
                 "connect the control that this node was set up with, or give the node a new "
                 "state folder");
  if (set.epoch < epoch_)
    return Error(ErrorKind::kDenied, "old_epoch",
                 fmt::format("a later start of the store (epoch {}) was here already; this one "
                             "has epoch {}",
                             epoch_, set.epoch),
                 "stop the second control");
  if (set.cluster == cluster_ && set.epoch == epoch_) return {};
  if (set.cluster.empty() || set.cluster.find(' ') != std::string::npos)
    return Error(ErrorKind::kInvalid, "bad_cluster", "the desired set names no cluster");
  // Durable before anything of the new epoch is acted on.
  const std::vector<std::string> record{fmt::format("{} {}", set.cluster, set.epoch)};
  ADL_TRY_STATUS(journal_.append(kNodeJournal, record));  // the last record counts
  cluster_ = set.cluster;
  epoch_ = set.epoch;
  desired_revision_ = acknowledged_revision_ = 0;
  return {};
}

Status AgentCore::on_desired(const DesiredSet& set) {
  ADL_TRY_STATUS(admit(set));
  if (set.revision < desired_revision_) return {};  // late: a newer one of this epoch was taken
  std::set<InstanceId> told;
  for (const auto& desired : set.instances) {
    told.insert(desired.id);
    take_in(desired.id, &desired);
  }
  for (auto& [id, instance] : instances_)
    if (!told.contains(id)) take_in(id, nullptr);
  std::erase_if(instances_, [&](const auto& entry) {
    const auto& instance = entry.second;
    return !told.contains(entry.first) && !instance.out && instance.facts == InstanceFacts{} &&
           instance.live.container == ContainerPhase::kNone && instance.damage.empty();
  });
  if (!desired_known_ || desired_revision_ != set.revision) changed();
  desired_revision_ = set.revision;
  desired_known_ = true;
  acknowledge();
  return {};
}

void AgentCore::take_in(const InstanceId& id, const DesiredInstance* desired) {
  auto& instance = instances_[id];
  if (desired == nullptr) {
    instance.desired.reset();
    return;
  }
  const bool other_run = instance.desired && instance.desired->run && desired->run &&
                         instance.desired->run->id != desired->run->id;
  // A new wish is tried at once, whatever failed before.
  if (!instance.desired || other_run || instance.desired->presence != desired->presence) {
    instance.live.not_before = {};
    if (!instance.facts.run || !instance.facts.run->active()) instance.live.start_error.clear();
  }
  instance.desired = *desired;
  instance.live.desired_at = clock_.steady_now();
  take_lease(instance);
}

void AgentCore::take_lease(Instance& instance) const {
  auto& run = instance.facts.run;
  if (!instance.desired || !instance.desired->run) return;
  const auto& wanted = *instance.desired->run;
  if (run && run->active() && !run->result && wanted.id == run->id)
    run->lease = Moment{clock_.boot_id(), lease_end_ms(wanted, instance.live.desired_at)};
}

// A set is acknowledged when all that it takes away is durable: control gives the money of a
// shortened lease to another run then.
void AgentCore::acknowledge() {
  const bool waits = std::any_of(instances_.begin(), instances_.end(), [](const auto& entry) {
    const auto& [facts, live] = std::tie(entry.second.facts, entry.second.live);
    return entry.second.desired && entry.second.damage.empty() && facts.run &&
           lease_to_shorten(*facts.run, live);
  });
  if (waits || acknowledged_revision_ == desired_revision_) return;
  acknowledged_revision_ = desired_revision_;
  changed();
}

void AgentCore::on_inventory(const Result<Inventory>& inventory) {
  const auto before = cards_.observed();
  if (inventory.ok())
    cards_.on_inventory(*inventory);
  else
    cards_.on_failure(inventory.error());
  const auto after = cards_.observed();
  const bool same =
      before.size() == after.size() && std::equal(before.begin(), before.end(), after.begin(),
                                                  [](const ObservedCard& a, const ObservedCard& b) {
                                                    return a.id == b.id && a.health == b.health;
                                                  });
  if (!same) changed();
}

void AgentCore::on_images(const std::vector<ImageInfo>& images) {
  if (images.size() != images_.size()) changed();
  images_ = images;
}

void AgentCore::on_progress(const InstanceId& id, const std::string& phase,
                            std::optional<int> percent) {
  const auto found = instances_.find(id);
  if (found == instances_.end()) return;
  auto& instance = found->second;
  instance.image = ImageState::kPulling;
  if (instance.phase != phase) {
    instance.phase = phase;
    if (events_.size() < kEventsMax) events_.push_back({id, "progress", phase});
  }
  if (instance.percent != percent) changed();
  instance.percent = percent;
}

void AgentCore::on_init_event(const InitEvent& event) {
  const auto found = instances_.find(event.instance);
  if (found == instances_.end()) return;
  auto& instance = found->second;
  const auto& run = instance.facts.run;
  if (!run || run->id != event.run || run->result) return;
  switch (event.kind) {
    case InitEvent::Kind::kEnded:
      if (!instance.live.ended_at) instance.live.ended_at = clock_.steady_now();
      break;
    case InitEvent::Kind::kShutdown: instance.live.shutdown = true; break;
    case InitEvent::Kind::kReport:
      if (events_.size() < kEventsMax)
        events_.push_back({event.instance, event.report.level == "warning" ? "warning" : "progress",
                           event.report.message});
      break;
    case InitEvent::Kind::kLost:
      instance.live.connected = false;
      instance.live.go_sent = false;
      break;
  }
}

void AgentCore::on_exit(const InstanceId& id) {
  const auto found = instances_.find(id);
  if (found == instances_.end() || found->second.live.exit_seen) return;
  found->second.live.exit_seen = true;
  found->second.live.exit_at = clock_.steady_now();
  found->second.live.inspected.reset();
}

void AgentCore::on_disk_used(const InstanceId& id, std::int64_t bytes) {
  const auto found = instances_.find(id);
  if (found != instances_.end()) found->second.disk_used_bytes = bytes;
}

// ---- steps

Context AgentCore::context() const {
  return {
      clock_.steady_now(), to_unix_ms(clock_.utc_now()), clock_.boot_id(), desired_known_, &cards_,
      &config_.split};
}

std::vector<Action> AgentCore::take_actions() {
  std::vector<Action> actions;
  const auto now_is = context();
  for (auto& [id, instance] : instances_) {
    if (instance.out || !instance.damage.empty() || now_is.now < instance.live.not_before) continue;
    const auto* desired = instance.desired ? &*instance.desired : nullptr;
    auto action = next_action(id, desired, instance.facts, instance.live, now_is);
    if (!action) continue;
    // Held from here on, so that two runs can't be granted one card while the first is recorded.
    if (action->kind == ActionKind::kCreate)
      for (const auto& card : action->cards) cards_.hold(card, id);
    if (action->kind == ActionKind::kEnsureImage && instance.image != ImageState::kPulling) {
      instance.image = ImageState::kPulling;
      changed();
    }
    if (action->kind == ActionKind::kProve && !instance.live.prove_since)
      instance.live.prove_since = now_is.now;
    instance.out = action->kind;
    out_[id] = *action;
    actions.push_back(std::move(*action));
  }
  return actions;
}

bool AgentCore::idle() const {
  return out_.empty();
}

void AgentCore::absorb(const InstanceId& id, Instance& instance, const std::vector<Fact>& facts) {
  for (const auto& fact : facts) {
    apply(instance.facts, fact);
    if (fact.kind == FactKind::kDiskMade) instance.disk = DiskState::kReady;
    if (fact.kind == FactKind::kLease)
      instance.live.lease_recorded = Moment{fact.boot_id, fact.lease_end_ms};
    if (fact.kind == FactKind::kReleased) cards_.let_go(id);
    if (fact.kind == FactKind::kGranted)
      for (const auto& card : fact.cards) cards_.hold(card, id);
  }
  if (!facts.empty()) changed();
}

void AgentCore::on_result(const InstanceId& id, const ActionResult& result) {
  const auto found = instances_.find(id);
  const auto sent = out_.find(id);
  if (found == instances_.end() || sent == out_.end()) return;
  auto& instance = found->second;
  const auto action = std::move(sent->second);
  out_.erase(sent);
  instance.out.reset();
  // What was told while a lease was being recorded counts, not what was recorded.
  const auto told = instance.facts.run ? std::optional(*instance.facts.run) : std::nullopt;
  if (result.recorded) absorb(id, instance, action.before);
  if (action.kind == ActionKind::kRecord && told && told->id == instance.facts.run->id)
    instance.facts.run->lease = told->lease;
  // A new run starts with a clean slate, and at once with what was paid for it.
  if (result.recorded && action.kind == ActionKind::kCreate && !action.before.empty()) {
    Live fresh;
    fresh.image = instance.live.image;
    fresh.root_ok = instance.live.root_ok;
    fresh.desired_at = instance.live.desired_at;
    fresh.lease_recorded = instance.live.lease_recorded;
    instance.live = fresh;
    take_lease(instance);
  }
  if (action.kind == ActionKind::kCreate && !result.recorded && !action.before.empty())
    cards_.let_go(id);
  if (result.status.ok())
    succeeded(id, instance, action, result);
  else
    failed(id, instance, action, result);
  acknowledge();
}

void AgentCore::saw_container(Instance& instance, const ContainerStatus& status, SteadyTime at) {
  auto& live = instance.live;
  live.inspected = at;
  live.container = status.phase;
  if (status.phase == ContainerPhase::kExited) {
    if (!live.exit_seen) live.exit_seen = true;  // its time comes from the exit file
    live.end = status;
  } else if (status.phase == ContainerPhase::kNone) {
    live.connected = false;
  }
}

void AgentCore::succeeded(const InstanceId& id, Instance& instance, const Action& action,
                          const ActionResult& result) {
  auto& live = instance.live;
  live.failures = 0;
  live.not_before = {};
  absorb(id, instance, result.after);
  switch (action.kind) {
    case ActionKind::kEnsureImage:
      live.image = result.image;
      instance.image = ImageState::kReady;
      instance.percent.reset();
      break;
    case ActionKind::kEnsureDisk:
    case ActionKind::kEnsureRoot: live.root_ok = true; break;
    case ActionKind::kCreate: live.container = ContainerPhase::kCreated; break;
    case ActionKind::kStart: live.container = ContainerPhase::kRunning; break;
    case ActionKind::kConnect:
      live.connected = true;
      live.go_sent = false;
      live.keys_sent = action.keys;
      if (!live.ready_at) {
        live.ready_at = result.at;
        live.ready_utc = result.utc;
      }
      break;
    case ActionKind::kGo: live.go_sent = true; break;
    case ActionKind::kKeys: live.keys_sent = action.keys; return;
    case ActionKind::kStop:
      live.stop_sent = result.at;
      live.stop_grace_ms = action.grace_ms;
      break;
    case ActionKind::kKill: live.kill_sent = result.at; break;
    case ActionKind::kInspect:
      if (result.container) saw_container(instance, *result.container, result.at);
      return;
    case ActionKind::kRemove:
      live.removed = true;
      live.container = ContainerPhase::kNone;
      live.connected = false;
      break;
    case ActionKind::kProve:
      if (result.inventory) on_inventory(*result.inventory);
      break;
    case ActionKind::kRecord:
      if (!instance.facts.run || !instance.facts.run->active()) live.start_error.clear();
      return;
    case ActionKind::kDestroy:
      live = Live{};
      instance.disk = DiskState::kNone;
      break;
    case ActionKind::kForget:
      changed();
      instances_.erase(id);
      return;
  }
  instance.problem.clear();
  instance.remedy.clear();
  changed();
}

void AgentCore::failed(const InstanceId& id, Instance& instance, const Action& action,
                       const ActionResult& result) {
  auto& live = instance.live;
  const auto& error = result.status.error();
  ++live.failures;
  const auto factor = std::int64_t{1} << std::min(live.failures - 1, 16);
  auto delay = std::min(config_.retry_first * factor, config_.retry_max);
  const bool prepares = action.kind == ActionKind::kEnsureImage ||
                        action.kind == ActionKind::kEnsureDisk ||
                        action.kind == ActionKind::kEnsureRoot;
  const bool starts = action.kind == ActionKind::kCreate || action.kind == ActionKind::kStart;
  if (action.kind == ActionKind::kConnect || action.kind == ActionKind::kGo) {
    // Starting up, or gone: the pidfd or control's limit decides, not we.
    live.connected = false;
    delay = std::min(delay, Millis{2'000});
    if (error.code() == "not_ready") delay = Millis{0};
  } else if (action.kind == ActionKind::kProve) {
    if (result.inventory) on_inventory(*result.inventory);
    delay = Millis{500};
  } else if (action.kind == ActionKind::kStop || action.kind == ActionKind::kKeys) {
    live.connected = false;
    live.go_sent = false;
    delay = Millis{100};
  } else if (action.kind == ActionKind::kInspect || action.kind == ActionKind::kKill) {
    delay = std::min(delay, Millis{2'000});
  }
  if (prepares || starts) {
    log_warn("agent", "instance {}: {} ({})", id.str(), error.message(), error.code());
    instance.problem = error.kind() == ErrorKind::kInternal
                           ? std::string("the node could not make it; the operator's log says why")
                           : error.message();
    instance.remedy = error.remedy();
    if (action.kind == ActionKind::kEnsureImage) instance.image = ImageState::kFailed;
    if (action.kind == ActionKind::kEnsureDisk) instance.disk = DiskState::kFailed;
    if (is_final(error) || (starts && live.failures >= kCreateFailuresMax))
      live.start_error =
          error.kind() == ErrorKind::kInternal ? instance.problem : with_remedy(error);
    if (starts && !live.start_error.empty()) delay = Millis{0};
    changed();
  } else if (error.code() != "not_ready") {
    log_info("agent", "instance {}: {} ({})", id.str(), error.message(), error.code());
  }
  live.not_before = clock_.steady_now() + delay;
}

// ---- what is seen

ObservedInstance AgentCore::observe(const InstanceId& id, const Instance& instance) const {
  ObservedInstance seen;
  seen.id = id;
  seen.unknown = desired_known_ && !instance.desired;
  seen.destroyed = instance.facts.destroyed;
  seen.image = instance.facts.disk_made ? ImageState::kReady : instance.image;
  seen.image_digest = instance.facts.disk_made ? instance.facts.digest
                      : instance.live.image    ? instance.live.image->digest
                                               : std::string();
  if (seen.image == ImageState::kPulling) seen.image_percent = instance.percent;
  seen.disk = instance.disk;
  seen.problem = instance.damage.empty()
                     ? instance.problem
                     : fmt::format("the node keeps it as it is: {}", instance.damage);
  seen.remedy = instance.remedy;
  seen.disk_used_bytes = instance.disk_used_bytes;
  seen.host_key = instance.facts.host_key;
  const auto& run = instance.facts.run;
  const auto wanted = instance.desired && instance.desired->run
                          ? std::optional(instance.desired->run->id)
                          : std::nullopt;
  if (wanted && (!run || run->id != *wanted) && instance.facts.past.contains(*wanted)) {
    const auto& ended = instance.facts.past.at(*wanted);
    seen.run = ObservedRun{.id = *wanted, .phase = RunPhase::kEnded};
    seen.run->result = ended.result;
    seen.run->running_ms = ended.running_ms;
    seen.run->ready_utc_ms = ended.ready_utc_ms;
  } else if (run && (run->active() || !wanted || *wanted == run->id)) {
    ObservedRun now{.id = run->id};
    if (run->ready) now.ready_utc_ms = run->ready_utc_ms;
    now.running_ms = running_ms_seen(*run, instance.live, context());
    if (run->released) {
      now.phase = RunPhase::kEnded;
      now.result = run->result;
    } else {
      now.cards = run->cards;
      now.phase = run->result || run->stop_asked ? RunPhase::kStopping
                  : run->ready                   ? RunPhase::kRunning
                                                 : RunPhase::kStarting;
    }
    seen.run = std::move(now);
  } else if (wanted) {
    seen.run = ObservedRun{.id = *wanted, .phase = RunPhase::kAbsent};
  }
  return seen;
}

ObservedSet AgentCore::observed_set() const {
  ObservedSet set;
  set.node = config_.node;
  set.boot_id = clock_.boot_id();
  set.desired_revision = acknowledged_revision_;
  const auto& inventory = cards_.inventory();
  set.simulated_cards = inventory.simulated;
  set.driver_version = inventory.driver_version;
  set.cuda_version = inventory.cuda_version;
  for (const auto& [id, instance] : instances_) set.instances.push_back(observe(id, instance));
  set.cards = cards_.observed();
  for (const auto& image : images_)
    set.images.push_back({image.reference, image.digest, image.size_bytes});
  return set;
}

std::vector<RunningRun> AgentCore::running() const {
  std::vector<RunningRun> out;
  for (const auto& [id, instance] : instances_) {
    const auto& run = instance.facts.run;
    if (!run || !run->active() || run->result) continue;
    out.push_back({id, run->id, instance.facts.slot, run->cards,
                   run->started && instance.live.container == ContainerPhase::kRunning});
  }
  return out;
}

std::vector<std::pair<InstanceId, std::uint32_t>> AgentCore::disks() const {
  std::vector<std::pair<InstanceId, std::uint32_t>> out;
  for (const auto& [id, instance] : instances_)
    if (instance.facts.disk_made && !instance.facts.destroyed)
      out.emplace_back(id, instance.facts.slot);
  return out;
}

const InstanceFacts* AgentCore::facts(const InstanceId& id) const {
  const auto found = instances_.find(id);
  return found == instances_.end() ? nullptr : &found->second.facts;
}

}  // namespace autodl
