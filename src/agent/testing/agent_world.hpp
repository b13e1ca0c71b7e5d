// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// AgentWorld: a node's logic with everything around it faked, for tests and the simulation: steps
// run at once, the process can be killed at any call and started again; what is on disk and what
// runs stays.
#pragma once

#include <memory>
#include <vector>

#include "agent/action_runner.hpp"
#include "agent/agent_core.hpp"
#include "agent/testing/fake_init_links.hpp"
#include "gpu/testing/fake_gpu_inventory.hpp"
#include "journal/testing/memory_journal.hpp"
#include "runtime/testing/fake_runtime.hpp"

namespace autodl {

class AgentWorld {
 public:
  explicit AgentWorld(ManualClock& clock_to_use, int card_count = 2)
      : clock(clock_to_use), inventory(FakeGpuInventory::of(card_count)) {
    split.processors = 4;
    split.memory_bytes = std::int64_t{64} << 30;
    split.cards = card_count;
    ImageInfo image;
    image.reference = "autodl/base:trixie";
    image.digest = "sha256:" + std::string(64, 'a');
    image.env["PATH"] = "/usr/bin";
    runtime.add_image(image);
    links.reachable = [this](const InstanceId& id) { return runtime.running(id); };
    // An instance that is told to stop ends well.
    links.on_stop = [this](const InstanceId& id, const InitStop& stop) {
      if (obeys_stop) end_command(id, stop.run, 0);
    };
    boot();
  }

  // The process starts (again).
  void boot() {
    links.open.clear();
    core = std::make_unique<AgentCore>(AgentConfig{.split = split}, clock, journal);
    runner = std::make_unique<ActionRunner>(
        RunnerParts{runtime, inventory, cards, links, files, journal, clock, random}, split,
        RunnerEvents{});
    const auto found = runtime.scan();
    started = found.ok() && core->load(*found).ok();
    core->on_inventory(inventory.query(Millis{1'000}));
  }

  // One round: every step that is due is carried out. False: nothing was due.
  bool step() {
    const auto actions = core->take_actions();
    for (const auto& action : actions) {
      const auto result = runner->run(action);
      core->on_result(action.instance, result);
    }
    // The pidfd of a container that ended in the meantime.
    for (const auto& one : core->running())
      if (!runtime.running(one.instance) && runtime.has_container(one.instance) && one.open)
        core->on_exit(one.instance);
    return !actions.empty();
  }

  // Until nothing is due, and then for this much longer.
  void settle(Millis time = Millis{0}) {
    const auto end = clock.steady_now() + time;
    for (int rounds = 0; rounds < 100'000; ++rounds) {
      if (step()) continue;
      if (clock.steady_now() >= end) return;
      clock.advance(Millis{100});
    }
  }

  void end_command(const InstanceId& id, const RunId& run, int exit_code) {
    ExitRecord record;
    record.run = run;
    record.exit.exit_code = exit_code;
    runtime.end_container(id, exit_code, to_json(record));
  }

  ObservedInstance seen(const InstanceId& id) const {
    for (const auto& one : core->observed_set().instances)
      if (one.id == id) return one;
    return {};
  }

  ManualClock& clock;
  ResourceSplit split;
  FakeRuntime runtime;
  FakeGpuInventory inventory;
  FakeCardProvider cards;
  FakeInitLinks links;
  MemoryInstanceFiles files;
  MemoryJournal journal;
  SeededRandom random{7};
  bool obeys_stop = true;
  bool started = false;
  std::unique_ptr<AgentCore> core;
  std::unique_ptr<ActionRunner> runner;
};

}  // namespace autodl
