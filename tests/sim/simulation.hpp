// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The deterministic simulation: the very ControlCore that autodld links, a node, a lossy link, a
// store that fails, clocks that jump, users who do anything, all on one seeded schedule. After each
// step the invariants are checked; at the end everything must come to rest.
//
// The auditor does not trust the core: it reads the store's entries and the node's own history.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "control/core.hpp"
#include "control/testing/model_node.hpp"
#include "store/memory_store.hpp"

namespace autodl::sim {

struct Stats {
  std::int64_t steps = 0;
  std::int64_t runs = 0;
  std::int64_t crashes = 0;
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

 private:
  template <class M>
  struct Sent {
    M message;
    SteadyTime at;
  };

  bool chance(std::uint64_t percent) { return random_.below(100) < percent; }
  void open_core();
  void crash_core();
  void flush();
  void step();
  void user_step();
  void fault_step();
  void send_desired();
  void send_observed();
  template <class M, class F>
  void deliver(std::deque<Sent<M>>& link, bool faults, const F& take);
  void exchange(bool faults);
  void advance(std::int64_t ms_max);
  std::string drain();
  std::string all_at_rest() const;
  std::string audit_step() const;
  std::string audit_money() const;
  std::string audit_runs() const;
  const testing_support::ModelNode::Run* true_run(const RunRow& run) const;
  InstanceId any_instance();

  SeededRandom random_;  // the schedule's own
  SeededRandom ids_;     // the core's
  ManualClock clock_;
  MemoryStore store_{"cluster"};
  ImageCatalogue catalogue_{{{"autodl/base:trixie", {}, "autodl/base:trixie", "", 0}}};
  SecretBox secrets_{{}};
  CoreConfig config_;
  testing_support::ModelNode node_;
  std::unique_ptr<ControlCore> core_;
  std::deque<Sent<DesiredSet>> to_node_;
  std::deque<Sent<ObservedSet>> to_control_;
  std::vector<AccountId> accounts_;
  Stats stats_;
};

}  // namespace autodl::sim
