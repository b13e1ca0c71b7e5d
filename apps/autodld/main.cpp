// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// autodld: the daemon. `serve` keeps control, gateway and node running on one machine.
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.hpp"
#include "gpu/nvml_inventory.hpp"
#include "roles.hpp"
#include "store/backup.hpp"
#include "supervisor.hpp"

namespace autodl {

void block_stop_signals() {
  sigset_t watched;
  ::sigemptyset(&watched);
  ::sigaddset(&watched, SIGTERM);
  ::sigaddset(&watched, SIGINT);
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

void wait_for_stop_signal() {
  sigset_t watched;
  ::sigemptyset(&watched);
  ::sigaddset(&watched, SIGTERM);
  ::sigaddset(&watched, SIGINT);
  int number = 0;
  ::sigwait(&watched, &number);
}

namespace {

Status prepare_folders(const DaemonConfig& config) {
  ADL_TRY(user, find_user(config.user));
  ADL_TRY_STATUS(ensure_folder(config.state_dir, 0, 0, 0755));
  ADL_TRY_STATUS(ensure_folder(config.control_dir(), user.uid, user.gid, 0700));
  ADL_TRY_STATUS(ensure_folder(config.node_dir(), 0, 0, 0700));
  // Control makes control.sock here, the node link.sock and streams.sock. Sticky, and the node's
  // own folders made before any role runs: who takes over control can't put others in their places.
  ADL_TRY_STATUS(ensure_folder(config.run_dir, 0, user.gid, 01775));
  ADL_TRY_STATUS(ensure_folder(config.run_dir + "/rt", 0, 0, 0711));
  return ensure_folder(config.run_dir + "/sim", 0, 0, 0755);
}

// A connection through the gateway takes six descriptors (8192 of them); the usual soft limit is
// 1024.
constexpr rlim_t kOpenFilesWanted = 65'536;

void raise_open_files_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, kOpenFilesWanted));
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0)
    log_warn("serve", "open files: {}", std::strerror(errno));
}

Status serve(const DaemonConfig& config, std::vector<std::string> arguments) {
  if (::geteuid() != 0)
    return Error(ErrorKind::kDenied, "not_root", "serve starts the node, which needs root",
                 "run it with sudo");
  ADL_TRY_STATUS(prepare_folders(config));
  raise_open_files_limit();
  SystemClock clock;
  log_info("serve", "API http://{}  state {}", config.listen, config.state_dir);
  if (!config.simulate_gpus.empty())
    log_warn("serve", "CARDS ARE SIMULATED ({}): computation runs on the CPU",
             config.simulate_gpus);
  Supervisor supervisor({"node", "control", "gateway"}, std::move(arguments), clock);
  return supervisor.run();
}

int report(const Status& ended) {
  if (ended.ok()) return 0;
  log_error("main", "{}", ended.error().message());
  if (!ended.error().remedy().empty()) log_error("main", "  {}", ended.error().remedy());
  return 1;
}

int restore(const std::string& path, const std::string& backup) {
  const auto config = load_config(path);
  if (!config.ok()) return report(config.error());
  const auto user = find_user(config->user);
  if (!user.ok()) return report(user.error());
  const auto folder = ensure_folder(config->control_dir(), user->uid, user->gid, 0700);
  if (!folder.ok()) return report(folder);
  const std::string store = config->control_dir() + "/autodl.db";
  const auto restored = restore_store(backup, store, SystemClock());
  if (!restored.ok()) return report(restored.error());
  fmt::print("restored {} (cluster {}, epoch {}); what was there: {}.before-restore\n", store,
             restored->cluster, restored->epoch, store);
  if (::access((config->control_dir() + "/master.key").c_str(), F_OK) != 0)
    log_warn("restore",
             "'{}/master.key' is missing: put it there before control starts, or no "
             "access key of the backup can be opened",
             config->control_dir());
  return 0;
}

int run_role(const std::string& role, const std::string& path, const std::string& simulate) {
  auto config = load_config(path);
  if (!config.ok()) return report(config.error());
  config->simulate_gpus = simulate;
  if (role == "serve") {
    std::vector<std::string> arguments = {"--config", path};
    if (!simulate.empty()) arguments.insert(arguments.end(), {"--simulate-gpus", simulate});
    return report(serve(*config, std::move(arguments)));
  }
  set_log_role(role);
  block_stop_signals();
  if (role == "control") return report(run_control(*config));
  if (role == "gateway") return report(run_gateway(*config));
  if (role == "purge") return report(run_purge(*config));
  if (role == "cards") return report(run_cards(*config));
  return report(run_node(*config));
}

}  // namespace
}  // namespace autodl

int main(int argc, char** argv) {
  using namespace autodl;
  // A child that asks the driver's library; not for people.
  if (argc > 1 && std::string_view(argv[1]) == "nvml-child")
    return nvml_child_main(argc - 1, argv + 1);
  CLI::App app{"autodld: the daemon of autodl. `autodld serve` runs all of it on one machine."};
  app.set_version_flag("--version", "autodld " ADL_VERSION);
  app.require_subcommand(1);
  std::string config = "/etc/autodl/autodld.toml";
  std::string simulate;
  const auto add = [&](const char* role, const char* help) {
    auto* command = app.add_subcommand(role, help);
    command->add_option("--config", config, "configuration file");
    command->add_option("--simulate-gpus", simulate,
                        "simulated cards instead of real ones: \"RTX 3090:2,A100 40GB:1\"");
  };
  add("serve", "control, gateway and node on this machine");
  add("control", "API, decisions, money (started by serve)");
  add("gateway", "SSH endpoints (started by serve)");
  add("node", "containers, cards, disks (started by serve)");
  add("purge", "end all instances and remove what the node made on this machine");
  add("cards", "print this machine's cards: type, model, UUID");
  std::string backup;
  add("restore", "put a backup of the store in its place, while control does not run");
  app.get_subcommand("restore")
      ->add_option("backup", backup, "a file of `autodl admin backup`")
      ->required();
  CLI11_PARSE(app, argc, argv);
  if (app.get_subcommands().front()->get_name() == "restore") return restore(config, backup);
  return run_role(app.get_subcommands().front()->get_name(), config, simulate);
}
