// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "model/decide.hpp"

#include <gtest/gtest.h>

namespace autodl {
namespace {

TEST(DecideRun_Table, InOrderOfPrecedence) {
  using R = RunState;
  using P = RunPhase;
  using S = RunStep;
  RunTimes fresh;
  RunTimes late = fresh;
  late.starting_ms = 60'000;
  RunTimes over = fresh;
  over.running_ms = 10'000;
  over.max_runtime_ms = 10'000;
  RunTimes absent = fresh;
  absent.absent_ms = 60'000;
  RunTimes silent = over;
  silent.silent_past_lease_ms = 60'000;
  RunTimes silent_short = fresh;
  silent_short.silent_past_lease_ms = 59'999;
  struct Row {
    R state;
    P phase;
    RunTimes times;
    S step;
  };
  const Row rows[] = {
      {R::kQueued, P::kRunning, late, S::kNothing},
      {R::kEnded, P::kEnded, late, S::kNothing},
      {R::kStarting, P::kEnded, silent, S::kEnd},
      {R::kStopping, P::kEnded, fresh, S::kEnd},
      {R::kRunning, P::kRunning, silent, S::kLose},
      {R::kStopping, P::kStopping, silent, S::kLose},
      {R::kRunning, P::kRunning, silent_short, S::kNothing},
      {R::kRunning, P::kAbsent, absent, S::kLose},
      {R::kStopping, P::kAbsent, absent, S::kLose},
      {R::kStarting, P::kAbsent, absent, S::kNothing},
      {R::kStarting, P::kRunning, late, S::kBecomeRunning},
      {R::kStarting, P::kStopping, late, S::kBecomeStopping},
      {R::kStarting, P::kStarting, late, S::kStartTimedOut},
      {R::kStarting, P::kAbsent, late, S::kStartTimedOut},
      {R::kStarting, P::kStarting, fresh, S::kNothing},
      {R::kRunning, P::kStopping, over, S::kBecomeStopping},
      {R::kRunning, P::kRunning, over, S::kRuleStop},
      {R::kRunning, P::kRunning, fresh, S::kNothing},
      {R::kStopping, P::kStopping, over, S::kNothing},
  };
  int index = 0;
  for (const auto& row : rows) {
    RunRow run;
    run.state = row.state;
    ObservedRun observed;
    observed.phase = row.phase;
    EXPECT_EQ(decide_run(run, &observed, row.times), row.step) << "row " << index;
    if (row.phase == P::kAbsent) {
      EXPECT_EQ(decide_run(run, nullptr, row.times), row.step) << "row " << index;
    }
    ++index;
  }
}

TEST(EndingOf_Table, OutcomeAndState) {
  struct Row {
    const char* what;
    std::optional<StopBy> stop;
    RunResult result;
    bool command;
    bool reached;
    Outcome outcome;
    InstanceState state;
  };
  const auto result = [](auto change) {
    RunResult r;
    r.started = true;
    change(r);
    return r;
  };
  using RR = RunResult;
  const auto stopped = InstanceState::kStopped;
  const auto failed = InstanceState::kFailed;
  const auto exit0 = result([](RR& r) { r.exit_code = 0; });
  const auto exit3 = result([](RR& r) { r.exit_code = 3; });
  const auto killed = result([](RR& r) { r.signal = 9; });
  const auto oom = result([](RR& r) {
    r.out_of_memory = true;
    r.signal = 9;
  });
  const auto none = result([](RR&) {});
  const auto lost = result([](RR& r) { r.lost = true; });
  const auto shut = result([](RR& r) { r.shutdown_inside = true; });
  const auto lease = result([](RR& r) {
    r.stopped_by = StopBy::kLease;
    r.signal = 15;
  });
  const auto user = result([](RR& r) {
    r.stopped_by = StopBy::kUser;
    r.signal = 2;
  });
  const auto unborn = result([](RR& r) {
    r.start_failed = true;
    r.started = false;
  });
  const Row rows[] = {
      {"exit 0", {}, exit0, true, false, Outcome::kCompleted, stopped},
      {"exit 3", {}, exit3, true, false, Outcome::kFailed, stopped},
      {"killed", {}, killed, true, false, Outcome::kFailed, stopped},
      {"oom", {}, oom, true, false, Outcome::kFailed, stopped},
      {"oom though stopped", StopBy::kUser, oom, true, false, Outcome::kFailed, stopped},
      {"no record", {}, none, true, false, Outcome::kFailed, stopped},
      {"no command, gone", {}, none, false, false, Outcome::kCompleted, stopped},
      {"lost", {}, lost, true, false, Outcome::kLost, failed},
      {"lost though stopped", StopBy::kUser, lost, true, false, Outcome::kLost, failed},
      {"exit before stop", StopBy::kUser, exit0, true, false, Outcome::kCompleted, stopped},
      {"user", StopBy::kUser, user, true, false, Outcome::kCancelled, stopped},
      {"user, no command", StopBy::kUser, none, false, false, Outcome::kCompleted, stopped},
      {"rule", StopBy::kRule, none, true, true, Outcome::kRule, stopped},
      {"lease", {}, lease, true, false, Outcome::kRule, stopped},
      {"lease at max_runtime", {}, lease, true, true, Outcome::kRule, stopped},
      {"platform", StopBy::kPlatform, none, true, false, Outcome::kLost, failed},
      {"shutdown inside", {}, shut, true, false, Outcome::kCancelled, stopped},
      {"shutdown, no command", {}, shut, false, false, Outcome::kCompleted, stopped},
      {"start failed", {}, unborn, true, false, Outcome::kStartFailed, failed},
      {"stopped while starting", StopBy::kUser, unborn, true, false, Outcome::kCancelled, stopped},
  };
  for (const auto& row : rows) {
    RunRow run;
    run.stop = row.stop;
    const auto got = ending_of(run, row.result, row.command, row.reached);
    EXPECT_EQ(got.outcome, row.outcome) << row.what << ": " << to_string(got.outcome);
    EXPECT_EQ(got.state, row.state) << row.what;
  }
  RunRow late;
  late.start_timed_out = true;
  late.stop = StopBy::kPlatform;
  EXPECT_EQ(ending_of(late, user, true, false).outcome, Outcome::kStartFailed);
}

}  // namespace
}  // namespace autodl
