// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "model/decide.hpp"

#include <fmt/format.h>

namespace autodl {

RunStep decide_run(const RunRow& run, const ObservedRun* observed, const RunTimes& times) {
  if (run.state == RunState::kQueued || run.state == RunState::kEnded) return RunStep::kNothing;
  const RunPhase phase = observed == nullptr ? RunPhase::kAbsent : observed->phase;
  if (phase == RunPhase::kEnded) return RunStep::kEnd;
  if (times.silent_past_lease_ms >= kLossMarginMs) return RunStep::kLose;
  // A starting run that the node has not begun is the start limit's affair; one that was told to
  // stop before the node ever had it, and one that ran, are over when the node lacks them.
  const bool may_be_lost = run.state != RunState::kStarting;
  if (may_be_lost && phase == RunPhase::kAbsent && times.absent_ms >= kLossMarginMs) {
    return RunStep::kLose;
  }
  if (run.state == RunState::kStarting) {
    if (phase == RunPhase::kRunning) return RunStep::kBecomeRunning;
    if (phase == RunPhase::kStopping) return RunStep::kBecomeStopping;
    if (times.starting_ms >= times.start_limit_ms) return RunStep::kStartTimedOut;
  }
  if (run.state == RunState::kRunning) {
    if (phase == RunPhase::kStopping) return RunStep::kBecomeStopping;
    if (times.max_runtime_ms > 0 && times.running_ms >= times.max_runtime_ms) {
      return RunStep::kRuleStop;
    }
  }
  return RunStep::kNothing;
}

namespace {

Ending start_failed(std::string reason) {
  return {Outcome::kStartFailed, InstanceState::kFailed,
          reason.empty() ? "the start failed" : std::move(reason),
          "see the events; start it again, nothing was charged"};
}

// The end by what the command itself left.
Ending by_exit(const RunResult& result, bool has_command) {
  const auto stopped = InstanceState::kStopped;
  if (result.out_of_memory) {
    return {Outcome::kFailed, stopped,
            result.reason.empty() ? "memory limit exceeded" : result.reason,
            "use less memory, or take more cards: memory comes with them"};
  }
  if (result.exit_code == 0) return {Outcome::kCompleted, stopped, "", ""};
  if (result.exit_code) {
    return {Outcome::kFailed, stopped,
            result.reason.empty()
                ? fmt::format("the command ended with exit code {}", *result.exit_code)
                : result.reason,
            *result.exit_code == 127 ? "the command was not found in the image" : "see the logs"};
  }
  if (result.signal) {
    return {
        Outcome::kFailed, stopped,
        result.reason.empty() ? fmt::format("killed by signal {}", *result.signal) : result.reason,
        "see the logs"};
  }
  if (!has_command) return {Outcome::kCompleted, stopped, result.reason, ""};
  return {Outcome::kFailed, stopped,
          result.reason.empty() ? "ended without an exit record" : result.reason, "see the logs"};
}

}  // namespace

Ending ending_of(const RunRow& run, const RunResult& result, bool has_command,
                 bool max_runtime_reached) {
  const auto stopped = InstanceState::kStopped;
  if (result.lost) {
    return {Outcome::kLost, InstanceState::kFailed,
            result.reason.empty() ? "the platform lost the run" : result.reason,
            "the disk is kept: start it again; restart=\"on-loss\" does so by itself"};
  }
  if (run.start_timed_out) return start_failed(run.reason);
  const bool by_user = run.stop == StopBy::kUser;
  if (result.start_failed && !by_user) return start_failed(result.reason);
  // Who ended it: the node's word; else what was asked here, where the command had not ended yet.
  const bool ended_itself = !result.stopped_by && (result.exit_code || result.signal);
  const std::optional<StopBy> by = result.stopped_by ? result.stopped_by
                                   : ended_itself    ? std::nullopt
                                                     : run.stop;
  if (result.out_of_memory || (!by && !result.shutdown_inside)) return by_exit(result, has_command);
  if (!by) {
    return {has_command ? Outcome::kCancelled : Outcome::kCompleted, stopped,
            "shut down from inside", ""};
  }
  switch (*by) {
    case StopBy::kUser:
      return {has_command ? Outcome::kCancelled : Outcome::kCompleted, stopped,
              run.reason.empty() ? "stopped by you" : run.reason, ""};
    case StopBy::kRule: return {Outcome::kRule, stopped, "max_runtime is over", ""};
    case StopBy::kLease:
      if (max_runtime_reached) return {Outcome::kRule, stopped, "max_runtime is over", ""};
      return {Outcome::kRule, stopped, "the balance is used up", "add credit and start it again"};
    case StopBy::kPlatform: break;
  }
  return {Outcome::kLost, InstanceState::kFailed,
          run.reason.empty() ? "stopped by the platform" : run.reason,
          "the seconds after the stop are not charged; start it again"};
}

}  // namespace autodl
