// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The role `node`: runtime, cards, agent.
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "agent/agent.hpp"
#include "base/log.hpp"
#include "fileworker/spawn.hpp"
#include "node_parts.hpp"
#include "roles.hpp"

namespace autodl {

namespace {

ResourceSplit split_of_machine(const Inventory& inventory, bool simulated) {
  ResourceSplit split;
  split.processors = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  struct sysinfo info{};
  if (::sysinfo(&info) == 0)
    split.memory_bytes = static_cast<std::int64_t>(info.totalram) * info.mem_unit;
  split.cards = static_cast<int>(inventory.cards.size());
  // Made-up cards have no processors of their own: two of them on two cores would starve others.
  split.share_processors = simulated;
  return split;
}

// The worker ends with its channel; somebody has to wait for it.
Result<UniqueFd> start_file_worker(const std::string& program,
                                   ContainerRuntime::Namespaces namespaces) {
  FileWorkerSpec spec;
  spec.program = program;
  spec.user_namespace = namespaces.user.get();
  spec.mount_namespace = namespaces.mount.get();
  spec.root = namespaces.root;
  ADL_TRY(worker, spawn_file_worker(spec));
  std::thread([pid = worker.pid] { ::waitpid(pid, nullptr, 0); }).detach();
  return std::move(worker.channel);
}

}  // namespace

Status run_node(const DaemonConfig& config) {
  SystemClock clock;
  SystemRandom random;
  ADL_TRY(user, find_user(config.user));
  ADL_TRY(settings, runtime_config(config));
  const auto worker_program = settings.toolbox_dir + "/sbin/autodl-fileworker";
  RuncRuntime runtime(settings);
  ADL_TRY(cards, card_parts(config, clock));
  Inventory inventory;
  if (auto asked = cards.inventory->query(Millis{10'000}); asked.ok())
    inventory = std::move(asked).value();
  else
    log_error("node", "cards: {}", asked.error().message());
  for (const auto& card : inventory.cards)
    log_info("node", "card {} {}{}", card.id.str(), card.model,
             inventory.simulated ? " (SIMULATED)" : "");

  AgentOptions options;
  options.core.node = NodeId{"local"};
  options.core.split = split_of_machine(inventory, inventory.simulated);
  options.state_dir = config.node_dir();
  options.link_path = config.link_socket();
  options.streams_path = config.streams_socket();
  options.rights = {.mode = 0660, .group = user.gid};
  options.user = user.uid;
  Agent agent(options, {.runtime = runtime,
                        .inventory = *cards.inventory,
                        .cards = *cards.provider,
                        .clock = clock,
                        .random = random,
                        .start_file_worker = [worker_program](ContainerRuntime::Namespaces n) {
                          return start_file_worker(worker_program, std::move(n));
                        }});
  ADL_TRY_STATUS(agent.start());
  log_info("node", "ready: {} cards, state {}", inventory.cards.size(), config.node_dir());
  wait_for_stop_signal();
  agent.stop();
  return {};
}

}  // namespace autodl
