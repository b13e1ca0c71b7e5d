// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// control_sim [--seed N] [--seeds COUNT] [--steps M] [--log]: runs seeds N, N+1, …; prints what was
// covered, or the first broken invariant and the one command that repeats it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/log.hpp"
#include "simulation.hpp"

int main(int argc, char** argv) {
  std::uint64_t seed = 1;
  std::uint64_t seeds = 1;
  std::int64_t steps = 10'000;
  CLI::App app("deterministic simulation of control, link, store and node");
  app.add_option("--seed", seed, "the first seed");
  app.add_option("--seeds", seeds, "how many seeds");
  app.add_option("--steps", steps, "steps per seed")->check(CLI::PositiveNumber);
  bool loud = false;
  app.add_flag("--log", loud, "what the cores log and the node does, to stderr");
  CLI11_PARSE(app, argc, argv);
  if (!loud) autodl::set_log_level(autodl::LogLevel::kError);
  autodl::sim::Stats sum;
  for (std::uint64_t i = 0; i < seeds; ++i) {
    autodl::sim::Simulation simulation(seed + i);
    if (loud) simulation.trace();
    const std::string broken = simulation.run(steps);
    const auto& stats = simulation.stats();
    sum.steps += stats.steps;
    sum.runs += stats.runs;
    sum.started += stats.started;
    sum.crashes += stats.crashes;
    sum.node_crashes += stats.node_crashes;
    sum.reboots += stats.reboots;
    sum.store_faults += stats.store_faults;
    sum.lost_messages += stats.lost_messages;
    sum.entries += stats.entries;
    if (!broken.empty()) {
      fmt::print(stderr, "seed {}: {}\nrepeat it: {} --seed {} --steps {}\n", seed + i, broken,
                 argv[0], seed + i, steps);
      return 1;
    }
  }
  fmt::print(
      "{} steps, {} runs ({} commands started), {} crashes of control, {} kills of the node within "
      "a step, {} restarts of the machine, {} store faults, {} lost messages, {} ledger entries: "
      "all invariants held\n",
      sum.steps, sum.runs, sum.started, sum.crashes, sum.node_crashes, sum.reboots,
      sum.store_faults, sum.lost_messages, sum.entries);
  return 0;
}
