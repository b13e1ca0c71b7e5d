// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// How a run ended and how long it ran, from what the node knows. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/facts.hpp"
#include "base/clock.hpp"
#include "runtime/runtime.hpp"

namespace autodl {

// end: the exited container; none where there is no container any more.
// start_error: why the node gave up before ready; empty otherwise.
RunResult make_run_result(const RunFacts& run, const std::optional<ContainerStatus>& end,
                          const std::string& start_error, std::int64_t memory_limit_bytes);

struct EndTime {
  std::optional<SteadyTime> seen;             // the moment PID 1's end was seen
  std::optional<std::int64_t> exited_utc_ms;  // from conmon's exit file
  SteadyTime now{};
  std::int64_t utc_now_ms = 0;
  std::string boot_id;
};

// Running time from ready to the end in ms: what was seen; else what the exit file tells, kept
// between the last time the journal says it lived and now; else that last time. Never more than
// what was paid. 0 where it never was ready.
std::int64_t running_ms_at_end(const RunFacts& run, const EndTime& end);
// The same while it runs.
std::int64_t running_ms_now(const RunFacts& run, SteadyTime now, const std::string& boot_id);

inline std::int64_t to_ms(SteadyTime time) {
  return std::chrono::duration_cast<Millis>(time).count();
}

}  // namespace autodl
