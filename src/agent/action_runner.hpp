// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// ActionRunner: carries one step out, against the runtime, the cards, init and the journal. Blocks.
// Steps of different instances run in parallel (Agent's worker threads); the simulation calls it
// directly, with fakes.
//
//   journal(before), synced ──▶ effect ──▶ journal(after), synced ──▶ result
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "agent/actions.hpp"
#include "agent/init_links.hpp"
#include "agent/instance_files.hpp"
#include "agent/resources.hpp"
#include "base/random.hpp"
#include "gpu/card_provider.hpp"
#include "gpu/inventory.hpp"
#include "journal/journal.hpp"
#include "runtime/runtime.hpp"

namespace autodl {

// What a step says while it is out, from its thread.
struct RunnerEvents {
  std::function<void(const InstanceId&, std::string phase, std::optional<int> percent)> progress;
  std::function<void(const InstanceId&, UniqueFd pidfd)> watch;
};

struct RunnerParts {
  ContainerRuntime& runtime;
  GpuInventory& inventory;
  CardProvider& cards;
  InitLinks& links;
  InstanceFiles& files;
  Journal& journal;
  const Clock& clock;
  Random& random;  // used under a lock of the runner's
};

class ActionRunner {
 public:
  ActionRunner(RunnerParts parts, ResourceSplit split, RunnerEvents events)
      : parts_(parts), split_(split), events_(std::move(events)) {}

  ActionResult run(const Action& action);
  // The key of the instance's present run, for streams into it.
  Result<std::string> run_key(const InstanceId& instance, const RunId& run);

 private:
  Status effect(const Action& action, ActionResult& result);
  Status ensure_image(const Action& action, ActionResult& result);
  Status ensure_disk(const Action& action, ActionResult& result);
  Status create(const Action& action);
  Status start(const Action& action);
  Status connect(const Action& action, ActionResult& result);
  Status prove(const Action& action, ActionResult& result);
  void watch(const InstanceId& instance);
  Result<std::string> host_key_of(const InstanceId& instance);
  Result<InitTarget> stored_target(const Action& action);
  std::string cpuset_of(const std::vector<CardId>& cards);

  RunnerParts parts_;
  const ResourceSplit split_;
  const RunnerEvents events_;
  std::mutex random_mutex_;
};

// The user's name for an instance as a host name: letters, digits, '-'; at most 63; never empty.
std::string safe_hostname(const std::string& name);
// Public keys as init takes them; a line that holds none is left out.
std::vector<AccessKey> to_access_keys(const std::vector<std::string>& lines);

}  // namespace autodl
