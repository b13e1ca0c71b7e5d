// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// AgentNode: the node of the simulation. The very AgentCore, ActionRunner, journal facts and link
// JSON that autodld links, above a machine in memory: FakeRuntime, init, cards, journal and files
// survive the process; containers do not survive the machine.
//
// kill_at(n) ends the process at the n-th call it makes of the machine from now: before it, after
// it, or with a part of a journal write done. It stays dead until boot().
//
// It keeps its own history of every run (Truth), seen from the machine's side, for the auditor.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/action_runner.hpp"
#include "agent/agent_core.hpp"
#include "agent/testing/fake_init_links.hpp"
#include "gpu/testing/fake_gpu_inventory.hpp"
#include "journal/testing/memory_journal.hpp"
#include "runtime/testing/fake_runtime.hpp"

namespace autodl::sim {

class AgentNode;

// Thrown where the process dies.
struct CrashNow {};

// Calls `at` before and after each write; a write that is cut off leaves a part of its records.
class CuttableJournal final : public Journal {
 public:
  explicit CuttableJournal(AgentNode& node) : node_(node) {}
  Result<std::vector<LoadedJournal>> load_all() override { return memory.load_all(); }
  Status append(const std::string& name, const std::vector<std::string>& records) override;
  Status rewrite(const std::string& name, const std::vector<std::string>& records) override;
  Status remove(const std::string& name) override;

  MemoryJournal memory;

 private:
  AgentNode& node_;
};

class CuttableFiles final : public InstanceFiles {
 public:
  explicit CuttableFiles(AgentNode& node) : node_(node) {}
  Status put(const InstanceId& id, const std::string& name, const std::string& bytes) override;
  Result<std::optional<std::string>> get(const InstanceId& id, const std::string& name) override;
  Status remove_all(const InstanceId& id) override;

 private:
  AgentNode& node_;
  MemoryInstanceFiles memory_;
};

// What really happened to a run, in the simulation's own time.
struct Truth {
  InstanceId instance;
  std::optional<Millis> ready;    // init answered for the first time
  std::optional<Millis> started;  // its command
  std::optional<Millis> ended;    // PID 1 is gone
  bool hurt = false;              // reboot, container taken away
  bool unseen = false;            // it ended while the process was dead
};

class AgentNode {
 public:
  AgentNode(ManualClock& clock, const Millis& elapsed, std::uint64_t seed);

  bool alive() const { return core_ != nullptr; }
  void boot();  // the process starts (again), whatever kills it meanwhile
  void kill();
  void kill_at(int calls) { kill_in_ = calls; }
  void reboot();  // the process is dead, containers and mounts are gone; boot() follows

  // The link's two ends: text as on the wire. An answer of the core is no error of the simulation.
  void on_desired(const std::string& text);
  std::optional<std::string> observed();  // none: dead
  // One round of what is due; hasty: every step at once. False: nothing was due or out.
  bool step(bool hasty);

  // ---- what happens to instances
  std::vector<InstanceId> running_instances() const;
  void end_command(const InstanceId& id, std::uint64_t how);
  void break_init_link(const InstanceId& id);
  void type_shutdown(const InstanceId& id);
  void lose_container(const InstanceId& id);
  void fail_once(std::uint64_t which);  // a call of the machine fails
  void soil_card(bool soiled);          // a foreign process on card 0

  // ---- for the auditor
  const std::string& broken() const { return broken_; }  // the first broken promise, or empty
  void check();                                          // looks for more
  std::string left_over() const;                         // after all was released: what is there
  const std::map<RunId, Truth>& truths() const { return truths_; }
  std::optional<Millis> lease_left(const InstanceId& id, const RunId& run) const;
  std::optional<Millis> next_lease() const;
  Millis up_since() const { return up_since_; }
  int crashes() const { return crashes_; }

  bool starts_hang = false;
  bool obeys_stop = true;
  bool traced = false;  // each step to stderr

 private:
  friend class CuttableJournal;
  friend class CuttableFiles;

  // A place where the process may die. Returns true where it shall die after the call instead.
  bool point();
  [[noreturn]] static void die() { throw CrashNow{}; }
  void on_call(const std::string& call, const InstanceId& id);
  template <class Fn>
  void guarded(const Fn& work);
  void trace(const std::string& text) const;
  void died();
  void notice();
  void note_end(const InstanceId& id);
  void break_promise(std::string what) {
    if (broken_.empty()) broken_ = std::move(what);
  }

  ManualClock& clock_;
  const Millis& elapsed_;
  SeededRandom random_;
  SeededRandom keys_;
  ResourceSplit split_;
  FakeRuntime runtime_;
  FakeGpuInventory inventory_;
  FakeCardProvider cards_;
  FakeInitLinks links_;
  CuttableFiles files_{*this};
  CuttableJournal journal_{*this};
  std::unique_ptr<ActionRunner> runner_;
  std::unique_ptr<AgentCore> core_;
  std::vector<Action> waiting_;                                  // taken, not carried out yet
  std::vector<std::pair<InstanceId, ActionResult>> unanswered_;  // carried out
  std::map<RunId, Truth> truths_;
  std::string broken_;
  int kill_in_ = 0;
  int crashes_ = 0;
  int boots_ = 0;
  int rounds_ = 0;
  Millis up_since_{0};
};

}  // namespace autodl::sim
