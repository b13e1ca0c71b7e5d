// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "agent_node.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "agent/run_result.hpp"
#include "wire/set_json.hpp"

namespace autodl::sim {
namespace {

constexpr int kInventoryEvery = 4;  // rounds

// The calls of the runtime that FakeRuntime can cut off after their effect.
bool can_be_cut_after(const std::string& call) {
  return call == "ensure_disk" || call == "ensure_root" || call == "create_container" ||
         call == "start_container" || call == "kill_container" || call == "remove_container" ||
         call == "destroy";
}

}  // namespace

// ---- what the process writes

Status CuttableJournal::append(const std::string& name, const std::vector<std::string>& records) {
  if (records.empty()) return {};
  const bool after = node_.point();
  if (after) {
    const auto whole = node_.random_.below(records.size() + 1);
    const auto end = records.begin() + static_cast<std::ptrdiff_t>(whole);
    (void)memory.append(name, {records.begin(), end});
    AgentNode::die();
  }
  return memory.append(name, records);
}

Status CuttableJournal::rewrite(const std::string& name, const std::vector<std::string>& records) {
  const bool after = node_.point();
  const Status done = memory.rewrite(name, records);
  if (after) AgentNode::die();
  return done;
}

Status CuttableJournal::remove(const std::string& name) {
  const bool after = node_.point();
  const Status done = memory.remove(name);
  if (after) AgentNode::die();
  return done;
}

Status CuttableFiles::put(const InstanceId& id, const std::string& name, const std::string& bytes) {
  const bool after = node_.point();
  const Status done = memory_.put(id, name, bytes);
  if (after) AgentNode::die();
  return done;
}

Result<std::optional<std::string>> CuttableFiles::get(const InstanceId& id,
                                                      const std::string& name) {
  return memory_.get(id, name);
}

Status CuttableFiles::remove_all(const InstanceId& id) {
  const bool after = node_.point();
  const Status done = memory_.remove_all(id);
  if (after) AgentNode::die();
  return done;
}

// ---- the machine

AgentNode::AgentNode(ManualClock& clock, const Millis& elapsed, std::uint64_t seed)
    : clock_(clock), elapsed_(elapsed), random_(seed), keys_(seed ^ 0x6b65) {
  for (int i = 0; i < 3; ++i) {
    inventory_.add(fmt::format("GPU-{}", i), "NVIDIA GeForce RTX 3090", std::int64_t{24} << 30);
  }
  for (int i = 3; i < 5; ++i) {
    inventory_.add(fmt::format("GPU-{}", i), "NVIDIA A100-PCIE-40GB", std::int64_t{40} << 30);
  }
  split_.processors = 10;
  split_.memory_bytes = std::int64_t{64} << 30;
  split_.cards = 5;
  ImageInfo image;
  image.reference = "autodl/base:trixie";
  image.digest = "sha256:" + std::string(64, 'a');
  runtime_.add_image(image);
  image.reference = image.digest;
  runtime_.add_image(image);
  runtime_.on_call = [this](const std::string& call, const InstanceId& id, auto) {
    on_call(call, id);
  };
  links_.reachable = [this](const InstanceId& id) {
    if (!runtime_.running(id) || starts_hang) return false;
    Truth& truth = truths_[runtime_.spec_of(id)->run];
    truth.instance = id;
    truth.ended.reset();  // PID 1 may end and be made again before anything ran in it
    if (!truth.ready) truth.ready = elapsed_;
    return true;
  };
  links_.on_start = [this](const InstanceId& id, const RunId& run) {
    if (links_.starts[run] > 1) break_promise(fmt::format("run {} began twice", run.str()));
    Truth& truth = truths_[run];
    truth.instance = id;
    truth.started = elapsed_;
    if (point()) die();  // after the effect, before its answer
  };
  links_.on_stop = [this](const InstanceId& id, const InitStop&) {
    if (obeys_stop && runtime_.running(id)) end_command(id, 0);
  };
  boot();
}

bool AgentNode::point() {
  if (kill_in_ == 0 || --kill_in_ > 0) return false;
  if (random_.below(2) == 0) die();
  return true;
}

void AgentNode::on_call(const std::string& call, const InstanceId& id) {
  if (call == "create_container" && !runtime_.has_container(id)) links_.gone_to.erase(id);
  if (point()) {
    if (!can_be_cut_after(call)) die();
    runtime_.cut_next(call);
  }
}

// Work of the process: where it is killed, only what it holds in memory is gone.
template <class Fn>
void AgentNode::guarded(const Fn& work) {
  try {
    work();
  } catch (const CrashNow&) {
    died();
  } catch (const FakeRuntime::Cut&) {
    died();
  }
}

void AgentNode::trace(const std::string& text) const {
  if (traced) fmt::print(stderr, "{} ms: node: {}\n", elapsed_.count(), text);
}

void AgentNode::died() {
  ++crashes_;
  kill_in_ = 0;
  kill();
}

void AgentNode::kill() {
  trace("the process dies");
  for (auto& [run, truth] : truths_) {
    const bool running =
        runtime_.running(truth.instance) && runtime_.spec_of(truth.instance)->run == run;
    if (running && !truth.ended) continue;
    if (!truth.ended) truth.ended = elapsed_;
    const auto* facts = core_ == nullptr ? nullptr : core_->facts(truth.instance);
    const bool recorded =
        facts != nullptr &&
        (facts->past.contains(run) || (facts->run && facts->run->id == run && facts->run->result));
    if (!recorded) truth.unseen = true;
  }
  core_.reset();
  runner_.reset();
  waiting_.clear();
  unanswered_.clear();
  links_.open.clear();
}

void AgentNode::boot() {
  while (!alive()) {
    guarded([&] {
      auto core = std::make_unique<AgentCore>(AgentConfig{.split = split_}, clock_, journal_);
      runner_ = std::make_unique<ActionRunner>(
          RunnerParts{runtime_, inventory_, cards_, links_, files_, journal_, clock_, keys_},
          split_, RunnerEvents{});
      const auto found = runtime_.scan();
      if (!found.ok()) return;  // autodld ends and is started again
      if (const auto loaded = core->load(*found); !loaded.ok()) {
        return break_promise(fmt::format("load: {}", loaded.error().message()));
      }
      core->on_inventory(inventory_.query(Millis{1'000}));
      core_ = std::move(core);
    });
    if (!broken_.empty()) return;
  }
  up_since_ = elapsed_;
}

void AgentNode::reboot() {
  trace("the machine restarts");
  kill();
  kill_in_ = 0;
  for (auto& [run, truth] : truths_) {
    truth.hurt = truth.hurt || !truth.ended || truth.unseen;  // its exit file is gone, too
    if (!truth.ended) truth.ended = elapsed_;
  }
  runtime_.reboot();
  links_.gone_to.clear();
  clock_.reboot(fmt::format("00000000-0000-4000-8000-1{:011}", ++boots_));
}

// ---- the link

void AgentNode::on_desired(const std::string& text) {
  auto set = decode_desired(text);
  if (!set.ok()) {
    return break_promise(fmt::format("a desired set does not decode: {}", set.error().message()));
  }
  if (!alive()) return;
  guarded([&] {
    const Status taken = core_->on_desired(*set);
    const bool may_be =
        taken.ok() || taken.error().code() == "old_epoch" || taken.error().code() == "disk_error";
    if (!may_be) break_promise(fmt::format("a set was refused: {}", taken.error().message()));
  });
}

std::optional<std::string> AgentNode::observed() {
  if (!alive()) return std::nullopt;
  return encode_observed(core_->observed_set());
}

// ---- steps

bool AgentNode::step(bool hasty) {
  if (!alive()) return false;
  bool busy = false;
  guarded([&] {
    if (++rounds_ % kInventoryEvery == 0) {
      core_->on_inventory(inventory_.query(Millis{1'000}));
    }
    auto actions = core_->take_actions();
    busy = !actions.empty() || !waiting_.empty() || !unanswered_.empty();
    waiting_.insert(waiting_.end(), std::make_move_iterator(actions.begin()),
                    std::make_move_iterator(actions.end()));
    // Steps of different instances end in any order, and their results come later still.
    std::vector<Action> later;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      if (!hasty && random_.below(4) == 0) {
        later.push_back(waiting_[i]);
        continue;
      }
      const Action action = waiting_[i];
      trace(fmt::format("step {} of {} {}", static_cast<int>(action.kind), action.instance.str(),
                        action.run.str()));
      unanswered_.emplace_back(action.instance, runner_->run(action));
      notice();
    }
    waiting_ = std::move(later);
    while (!unanswered_.empty() && (hasty || random_.below(4) != 0)) {
      const auto [id, result] = std::move(unanswered_.front());
      unanswered_.erase(unanswered_.begin());
      core_->on_result(id, result);
    }
    notice();
  });
  return busy;
}

// What the machine tells the process: a pidfd that fires, the moment it does.
void AgentNode::notice() {
  for (auto& [run, truth] : truths_) {
    if (truth.ended || (!truth.ready && !truth.started)) continue;
    if (!runtime_.running(truth.instance) || runtime_.spec_of(truth.instance)->run != run) {
      truth.ended = elapsed_;
      truth.unseen = !alive();
    }
  }
  if (!alive()) return;
  for (const auto& one : core_->running()) {
    if (runtime_.has_container(one.instance) && !runtime_.running(one.instance)) {
      const auto found = truths_.find(one.run);
      if (found != truths_.end() && found->second.ended) core_->on_exit(one.instance);
    }
  }
}

// ---- what happens to instances

std::vector<InstanceId> AgentNode::running_instances() const {
  std::vector<InstanceId> out;
  for (const auto& [run, truth] : truths_) {
    if (truth.started && !truth.ended) out.push_back(truth.instance);
  }
  return out;
}

void AgentNode::end_command(const InstanceId& id, std::uint64_t how) {
  const auto spec = runtime_.spec_of(id);
  if (!spec || !runtime_.running(id)) return;
  ExitRecord record;
  record.run = spec->run;
  record.exit.exit_code = static_cast<int>(how % 3);
  if (how == 4) {
    runtime_.kill_out_of_memory(id);
  } else if (how == 5) {
    runtime_.end_container(id, 1, "{\"not\":\"a record\"}");
  } else {
    runtime_.end_container(id, record.exit.exit_code, to_json(record));
  }
  notice();
}

void AgentNode::break_init_link(const InstanceId& id) {
  const auto spec = runtime_.spec_of(id);
  if (!alive() || !spec || links_.open.erase(id) == 0) return;
  core_->on_init_event({InitEvent::Kind::kLost, id, spec->run, {}});
}

void AgentNode::type_shutdown(const InstanceId& id) {
  const auto spec = runtime_.spec_of(id);
  if (!alive() || !spec || !links_.open.contains(id)) return;
  core_->on_init_event({InitEvent::Kind::kShutdown, id, spec->run, {}});
}

void AgentNode::lose_container(const InstanceId& id) {
  if (const auto spec = runtime_.spec_of(id)) truths_[spec->run].hurt = true;
  break_init_link(id);
  runtime_.lose_container(id);
  links_.gone_to.erase(id);
  if (alive()) core_->on_exit(id);
  notice();
}

void AgentNode::fail_once(std::uint64_t which) {
  const Error error(ErrorKind::kUnavailable, "sim_fault", "it failed");
  static const char* const kCalls[] = {"ensure_image",     "ensure_disk",     "ensure_root",
                                       "create_container", "start_container", "kill_container",
                                       "remove_container", "destroy",         "status"};
  constexpr std::size_t kCallCount = std::size(kCalls);
  if (which % (kCallCount + 4) < kCallCount) {
    runtime_.fail_next(kCalls[which % (kCallCount + 4)], error);
  } else if (which % 2 == 0) {
    journal_.memory.fail_after = 0;
  } else if (which % 3 == 0) {
    inventory_.next_error = error;
  } else {
    links_.next_error = error;
  }
}

void AgentNode::soil_card(bool soiled) {
  auto& processes = *inventory_.find(CardId("GPU-0"))->processes;
  processes.clear();
  if (soiled) processes.push_back({.pid = 4711});
}

// ---- for the auditor

void AgentNode::check() {
  notice();
  std::map<CardId, InstanceId> delivered;
  for (const auto& [id, cards] : cards_.prepared) {
    for (const auto& card : cards) {
      const auto [at, fresh] = delivered.emplace(card, id);
      if (!fresh) {
        break_promise(fmt::format("card {} was delivered to {} and {}", card.str(),
                                  at->second.str(), id.str()));
      }
    }
  }
  for (const auto& [run, truth] : truths_) {
    if (truth.ended || !truth.started) continue;
    const auto spec = runtime_.spec_of(truth.instance);
    const auto cards = cards_.prepared.find(truth.instance);
    if (cards == cards_.prepared.end() || cards->second.size() != spec->devices.size()) {
      break_promise(fmt::format("run {} runs and its cards were released", run.str()));
    }
    if (!runtime_.has_disk(truth.instance)) break_promise("a run without its disk");
  }
}

std::string AgentNode::left_over() const {
  for (const auto& [run, truth] : truths_) {
    if (runtime_.has_disk(truth.instance)) {
      return fmt::format("instance {} has its disk", truth.instance.str());
    }
    if (runtime_.has_container(truth.instance)) {
      return fmt::format("instance {} has a container", truth.instance.str());
    }
  }
  for (const auto& [name, records] : journal_.memory.files) {
    if (name != "node") return fmt::format("instance {} has a journal", name);
  }
  if (!cards_.prepared.empty()) return "cards are delivered";
  return {};
}

std::optional<Millis> AgentNode::lease_left(const InstanceId& id, const RunId& run) const {
  const auto* facts = alive() ? core_->facts(id) : nullptr;
  if (facts == nullptr || !facts->run || facts->run->id != run || !facts->run->lease) {
    return std::nullopt;
  }
  if (facts->run->lease->boot_id != clock_.boot_id()) return std::nullopt;
  return Millis(facts->run->lease->steady_ms - to_ms(clock_.steady_now()));
}

std::optional<Millis> AgentNode::next_lease() const {
  std::optional<Millis> next;
  if (!alive()) return next;
  for (const auto& one : core_->running()) {
    const auto left = lease_left(one.instance, one.run);
    if (left && left->count() > 0 && (!next || *left < *next)) next = left;
  }
  return next;
}

}  // namespace autodl::sim
