// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// AgentCore: the whole of a node's logic as a synchronous, deterministic state machine.
//
// Owner and thread: one thread (Agent's loop, or the simulation) calls it. It knows no socket, no
// container and no coroutine. It writes the journal itself in two places only: load() (reads,
// shortens) and on_desired() (the epoch, once per start of control); all other records are written
// by the steps (ActionRunner).
//
//   on_desired, on_inventory, on_init_event, on_exit, on_result ─▶ core ─▶ take_actions()
//                                                                     └──▶ observed_set()
//
// A step that is out is never withdrawn; what changed meanwhile is seen when its result is back.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/actions.hpp"
#include "agent/cards.hpp"
#include "agent/decide.hpp"
#include "agent/init_links.hpp"
#include "base/clock.hpp"
#include "journal/journal.hpp"
#include "model/desired.hpp"
#include "model/observed.hpp"

namespace autodl {

struct AgentConfig {
  NodeId node{"local"};
  ResourceSplit split;
  Millis retry_first{200};
  Millis retry_max{60'000};
};

// A line for an instance's events (frame 4 of the link). type: "progress" or "warning".
struct NodeEvent {
  InstanceId instance;
  std::string type;
  std::string message;
  bool operator==(const NodeEvent&) const = default;
};

// Where streams may go, and what the samples need.
struct RunningRun {
  InstanceId instance;
  RunId run;
  std::uint32_t slot = 0;
  std::vector<CardId> cards;
  bool open = false;  // the command was started: logins are let in
};

class AgentCore {
 public:
  AgentCore(AgentConfig config, const Clock& clock, Journal& journal)
      : config_(std::move(config)), clock_(clock), journal_(journal) {}

  // Once: the journal, and what the runtime found on the machine. Errors: of the journal.
  Status load(const std::vector<FoundInstance>& found);

  // kDenied wrong_cluster, old_epoch; otherwise it is the node's desired set from now on.
  Status on_desired(const DesiredSet& set);
  void on_inventory(const Result<Inventory>& inventory);
  void on_images(const std::vector<ImageInfo>& images);
  void on_progress(const InstanceId& instance, const std::string& phase,
                   std::optional<int> percent);
  void on_init_event(const InitEvent& event);
  void on_exit(const InstanceId& instance);  // PID 1's pidfd fired
  void on_disk_used(const InstanceId& instance, std::int64_t bytes);
  void on_result(const InstanceId& instance, const ActionResult& result);

  // The steps that are due now, at most one out per instance. Call after each input, and every
  // 100 ms or so: time passes too.
  std::vector<Action> take_actions();
  bool idle() const;  // no step is out

  ObservedSet observed_set() const;
  // Grows with each change that should be told at once (figures that only tick do not count).
  std::uint64_t observed_version() const { return version_; }
  std::vector<NodeEvent> take_events() { return std::exchange(events_, {}); }
  std::vector<RunningRun> running() const;
  std::vector<std::pair<InstanceId, std::uint32_t>> disks() const;  // made here, and their slots
  const CardTable& cards() const { return cards_; }
  // For tests and the simulation's invariants.
  const InstanceFacts* facts(const InstanceId& instance) const;

 private:
  struct Instance {
    InstanceFacts facts;
    Live live;
    std::optional<DesiredInstance> desired;
    std::optional<ActionKind> out;  // the step that is in flight
    std::string damage;
    ImageState image = ImageState::kUnknown;
    DiskState disk = DiskState::kNone;
    std::optional<int> percent;
    std::string phase, problem, remedy;
    std::int64_t disk_used_bytes = 0;
  };

  Context context() const;
  Status admit(const DesiredSet& set);
  void take_in(const InstanceId& id, const DesiredInstance* desired);
  void take_lease(Instance& instance) const;
  void acknowledge();
  void absorb(const InstanceId& id, Instance& instance, const std::vector<Fact>& facts);
  void succeeded(const InstanceId& id, Instance& instance, const Action& action,
                 const ActionResult& result);
  void failed(const InstanceId& id, Instance& instance, const Action& action,
              const ActionResult& result);
  void saw_container(Instance& instance, const ContainerStatus& status, SteadyTime at);
  ObservedInstance observe(const InstanceId& id, const Instance& instance) const;
  void changed() { ++version_; }

  const AgentConfig config_;
  const Clock& clock_;
  Journal& journal_;
  CardTable cards_;
  std::map<InstanceId, Instance> instances_;
  std::map<InstanceId, Action> out_;
  std::string cluster_;
  std::uint64_t epoch_ = 0;
  std::uint64_t desired_revision_ = 0;
  std::uint64_t acknowledged_revision_ = 0;  // all that this set takes away is durable
  bool desired_known_ = false;
  std::vector<ImageInfo> images_;
  std::vector<NodeEvent> events_;
  std::uint64_t version_ = 1;
};

}  // namespace autodl
