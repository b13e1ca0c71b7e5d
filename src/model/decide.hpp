// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The pure decisions about a run: what control does next, given its row and what the node sees; and
// what the end of a run means. No clock, no I/O: durations come in as numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/observed.hpp"
#include "model/rows.hpp"

namespace autodl {

enum class RunStep {
  kNothing,
  kBecomeRunning,   // the node has journalled ready
  kBecomeStopping,  // the node is ending it, though nobody here asked (lease, shutdown inside)
  kEnd,             // the node proved the end: settle, free the cards
  kStartTimedOut,   // granted too long ago and not ready: stop it as the platform
  kRuleStop,        // max_runtime is over
  kLose,            // it is surely over and nobody can say how
};

// How long things have been so, in milliseconds.
struct RunTimes {
  std::int64_t starting_ms = 0;  // since the grant
  std::int64_t start_limit_ms = 60'000;
  std::int64_t running_ms = 0;             // best estimate for now
  std::int64_t max_runtime_ms = 0;         // 0: none
  std::int64_t absent_ms = 0;              // a live node has been saying that it has no such run
  std::int64_t silent_past_lease_ms = -1;  // the node is silent: since the worst case of its lease
};
inline constexpr std::int64_t kLossMarginMs = 60'000;

// observed: of this very run, or null.
RunStep decide_run(const RunRow& run, const ObservedRun* observed, const RunTimes& times);

struct Ending {
  Outcome outcome = Outcome::kCompleted;
  InstanceState state = InstanceState::kStopped;
  std::string reason;
  std::string remedy;
};

// What an end means. max_runtime_reached: so that the node's own end at a lease that the rule had
// bounded is told as the rule.
Ending ending_of(const RunRow& run, const RunResult& result, bool has_command,
                 bool max_runtime_reached);

}  // namespace autodl
