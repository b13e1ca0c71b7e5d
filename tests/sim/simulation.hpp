// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The deterministic simulation: the very ControlCore, AgentCore, ActionRunner and link JSON that
// autodld links, a machine in memory, a lossy link, a store that fails, processes that die between
// any two effects, clocks that jump, machines that restart, users who do anything, all on one
// seeded schedule. After each step the invariants are checked; at the end all must come to rest.
//
// The auditor (audit.cpp) trusts neither core: it reads the store's entries and the machine's own
// history of each run.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "agent_node.hpp"
#include "control/core.hpp"
#include "store/memory_store.hpp"

namespace autodl::sim {

struct Stats {
  std::int64_t steps = 0;
  std::int64_t runs = 0;
  std::int64_t started = 0;  // commands
  std::int64_t crashes = 0;
  std::int64_t node_crashes = 0;
  std::int64_t reboots = 0;
  std::int64_t store_faults = 0;
  std::int64_t lost_messages = 0;
  std::int64_t entries = 0;
};

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed);
  // Runs that many steps and then lets everything end; the first broken invariant, or empty.
  std::string run(std::int64_t steps);
  const Stats& stats() const { return stats_; }
  void trace() { node_.traced = true; }

 private:
  struct Sent {
    std::string text;  // as on the wire
    Millis at;
  };

  bool chance(std::uint64_t percent) { return random_.below(100) < percent; }
  void open_core();
  void crash_core();
  void flush();
  void step();
  void beat();
  void user_step();
  void fault_step();
  void instance_step();
  void restart_machine();
  void watch_node();
  void break_link(bool told);
  void send_desired();
  void send_observed();
  template <class F>
  void deliver(std::deque<Sent>& link, bool faults, const F& take);
  void exchange(bool faults);
  void observed_arrives(const std::string& text);
  void pass(Millis span);
  std::string drain();
  InstanceId any_instance();

  // audit.cpp
  std::string all_at_rest() const;
  std::string audit_step();
  std::string audit_money() const;
  std::string audit_runs() const;
  std::string audit_run(const RunRow& run, const Truth* truth) const;
  std::string audit_orphans() const;

  SeededRandom random_;  // the schedule's own
  SeededRandom ids_;     // the core's
  ManualClock clock_;
  Millis elapsed_{0};  // the auditor's time: no restart sets it back
  MemoryStore store_{"cluster"};
  ImageCatalogue catalogue_{{{"autodl/base:trixie", {}, "autodl/base:trixie", "", 0}}};
  SecretBox secrets_{{}};
  CoreConfig config_;
  AgentNode node_;
  bool node_up_ = true;  // as the link knows it
  std::unique_ptr<ControlCore> core_;
  std::deque<Sent> to_node_;
  std::deque<Sent> to_control_;
  std::vector<AccountId> accounts_;
  // Of each run: the end, in elapsed_, of the lease that the node was last seen to hold.
  mutable std::map<RunId, Millis> paid_until_;
  std::string broken_;
  Stats stats_;
};

}  // namespace autodl::sim
