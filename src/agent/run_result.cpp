// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "agent/run_result.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "agent/resources.hpp"
#include "wire/init_messages.hpp"

namespace autodl {

namespace {

constexpr int kKilledExit = 137;  // 128 + SIGKILL, as runc and conmon tell it

// The lease's end as a running time; none where no lease of the boot of `ready` is known.
std::optional<std::int64_t> paid_ms(const RunFacts& run) {
  if (!run.ready || !run.lease || run.lease->boot_id != run.ready->boot_id) return std::nullopt;
  return std::max<std::int64_t>(run.lease->steady_ms - run.ready->steady_ms, 0);
}

}  // namespace

RunResult make_run_result(const RunFacts& run, const std::optional<ContainerStatus>& end,
                          const std::string& start_error, std::int64_t memory_limit_bytes) {
  RunResult result;
  result.started = run.started;
  result.stopped_by = run.stop_asked;
  result.shutdown_inside = run.shutdown;
  bool known = false;
  if (end && run.started) {
    // The tenant can write this file: a record that does not fit is none.
    const auto record = parse_exit_record(end->exit_record);
    if (record.ok() && record->run == run.id) {
      result.exit_code = record->exit.exit_code;
      result.signal = record->exit.signal;
      result.shutdown_inside = result.shutdown_inside || record->shutdown;
      known = true;
    } else if (end->exit_code) {
      if (*end->exit_code == kKilledExit)
        result.signal = 9;
      else
        result.exit_code = *end->exit_code;
      known = true;
    }
  }
  result.out_of_memory = end && end->out_of_memory;
  if (!run.ready) {
    result.start_failed = !run.stop_asked.has_value() || !start_error.empty();
    if (!start_error.empty())
      result.reason = start_error;
    else if (end && end->out_of_memory)
      result.reason = fmt::format("the memory limit of {} was exceeded before it was ready",
                                  print_gib(memory_limit_bytes));
    else if (result.start_failed && end)
      result.reason =
          fmt::format("the instance's first process ended before it was ready (exit {})",
                      end->exit_code.value_or(-1));
    else if (result.start_failed)
      result.reason = "the container vanished before it was ready";
    return result;
  }
  if (run.started && !known && !end) {
    result.lost = true;
    result.reason = "the container is gone and left no record of its end";
  } else if (run.started && !known) {
    // Stopped by force before init could write its record: that is how it ended.
    result.signal = 9;
  }
  const bool killed = result.signal == 9 || result.exit_code == kKilledExit;
  if (result.out_of_memory && killed)
    result.reason = fmt::format("memory limit of {} exceeded (peak {})",
                                print_gib(memory_limit_bytes), print_gib(end->memory_peak_bytes));
  else if (result.stopped_by == StopBy::kLease)
    result.reason = "what was paid for is used up";
  return result;
}

std::int64_t running_ms_at_end(const RunFacts& run, const EndTime& end) {
  if (!run.ready) return 0;
  const bool same_boot = run.ready->boot_id == end.boot_id;
  std::int64_t ms = run.alive_ms;
  if (end.seen && same_boot) {
    ms = to_ms(*end.seen) - run.ready->steady_ms;
  } else if (end.exited_utc_ms && same_boot) {
    const auto ago = std::max<std::int64_t>(end.utc_now_ms - *end.exited_utc_ms, 0);
    ms = to_ms(end.now) - ago - run.ready->steady_ms;
    ms =
        std::clamp(ms, run.alive_ms, std::max(run.alive_ms, to_ms(end.now) - run.ready->steady_ms));
  } else if (end.exited_utc_ms) {
    ms = *end.exited_utc_ms - run.ready_utc_ms;
    ms = std::clamp(ms, run.alive_ms, std::max(run.alive_ms, end.utc_now_ms - run.ready_utc_ms));
  }
  if (const auto paid = paid_ms(run)) ms = std::min(ms, *paid);
  return std::max<std::int64_t>(ms, 0);
}

std::int64_t running_ms_now(const RunFacts& run, SteadyTime now, const std::string& boot_id) {
  if (!run.ready) return 0;
  if (run.result) return run.running_ms;
  if (run.ready->boot_id != boot_id) return run.alive_ms;
  std::int64_t ms = to_ms(now) - run.ready->steady_ms;
  if (const auto paid = paid_ms(run)) ms = std::min(ms, *paid);
  return std::max<std::int64_t>(ms, 0);
}

}  // namespace autodl
