// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Actions: the single steps a node takes for an instance, as values. AgentCore yields them (at most
// one at a time per instance), ActionRunner carries them out, the result goes back to the core.
// Each is idempotent and may be cut off anywhere.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/facts.hpp"
#include "base/clock.hpp"
#include "gpu/inventory.hpp"
#include "model/desired.hpp"
#include "runtime/runtime.hpp"

namespace autodl {

enum class ActionKind {
  kRecord,       // journal facts, nothing else
  kEnsureImage,  // reference → image
  kEnsureDisk,   // disk, host key, root; records disk_made after
  kEnsureRoot,   // mounted again after a restart of the machine
  kCreate,       // cards prepared, container made
  kStart,        // PID 1 starts
  kConnect,      // init dialled, set up, ready (or not yet: kUnavailable not_ready)
  kGo,           // init starts the command
  kKeys,         // init takes other account keys
  kStop,         // init ends everything in stages
  kKill,         // the whole cgroup, now
  kInspect,      // what the container is doing; its end
  kRemove,       // container, network, card files gone
  kProve,        // the run's cards are free; records released after
  kDestroy,      // nothing is left
  kForget,       // the journal too: control has forgotten the instance
};

struct Action {
  ActionKind kind = ActionKind::kRecord;
  InstanceId instance;
  RunId run;
  std::vector<Fact> before;  // journalled (synced) before the effect; where that fails: no effect
  std::vector<Fact> after;   // journalled when the effect succeeded
  std::string reference;     // kEnsureImage
  std::string digest;        // kEnsureDisk, kEnsureRoot
  std::uint32_t slot = 0;
  std::int64_t disk_bytes = 0;
  std::vector<CardId> cards;  // kCreate, kRemove, kProve
  std::string name;
  std::map<std::string, std::string> image_env;  // kEnsureDisk: kept for the instance's life
  std::optional<DesiredRun> desired;             // kCreate: command, env, workdir
  std::vector<std::string> keys;                 // kCreate, kConnect, kKeys
  std::int64_t grace_ms = 0;                     // kStop
  bool watch = false;                            // kConnect: also take a pidfd
};

struct ActionResult {
  ActionKind kind = ActionKind::kRecord;
  Status status;
  bool recorded = false;    // `before` is in the journal
  std::vector<Fact> after;  // what was journalled after the effect, filled in
  std::optional<ImageInfo> image;
  std::optional<ContainerStatus> container;
  std::optional<Inventory> inventory;  // kProve: fresh
  SteadyTime at{};                     // when the effect was over (ready, exit seen)
  UtcTime utc{};
};

}  // namespace autodl
