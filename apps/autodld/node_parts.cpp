// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "node_parts.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "gpu/card_delivery.hpp"
#include "gpu/card_names.hpp"
#include "roles.hpp"
#include "sim/models.hpp"
#include "sim/simulated_cards.hpp"

namespace autodl {

namespace fs = std::filesystem;

namespace {

// NVIDIA's library by its soname: the loader finds it where the driver put it.
constexpr const char* kDriverLibrary = "libnvidia-ml.so.1";

// What was built beside this program: in a build tree, or installed under ../lib/autodl.
Result<std::string> built_file(const std::string& name) {
  const auto program = fs::read_symlink("/proc/self/exe").parent_path();
  for (const auto& folder : {program / "../../sim", program / "../lib/autodl/sim"})
    if (fs::exists(folder / name)) return fs::canonical(folder / name).string();
  return Error(ErrorKind::kInvalid, "not_built", fmt::format("there is no {}", name),
               "build all targets: ninja -C build/release");
}

NvmlConfig nvml_config(const std::string& library) {
  NvmlConfig nvml;
  nvml.child_argv = {"/proc/self/exe", "nvml-child", "--library", library};
  return nvml;
}

}  // namespace

Result<RuntimeConfig> runtime_config(const DaemonConfig& config) {
  RuntimeConfig runtime;
  std::error_code failed;
  // Resolved: a restore refuses a bind mount whose source is a symbolic link.
  const auto toolbox = fs::canonical(config.toolbox, failed);
  if (failed)
    return Error(ErrorKind::kInvalid, "no_toolbox",
                 fmt::format("there is no toolbox at '{}'", config.toolbox),
                 fmt::format("build it: scripts/build-toolbox {} --programs build/release",
                             fs::path(config.toolbox).parent_path().string()));
  runtime.toolbox_dir = toolbox.string();
  runtime.state_dir = config.node_dir() + "/runtime";
  runtime.run_dir = config.run_dir + "/rt";
  runtime.name_prefix = config.name_prefix;
  runtime.uid_base = static_cast<std::uint32_t>(config.uid_base);
  runtime.address_pool = config.address_pool;
  runtime.image_root = config.image_store;
  runtime.resolvers = config.resolvers;
  runtime.allowed = config.allowed;
  runtime.host_reserve_bytes = config.disk_reserve_bytes;
  runtime.allow_overcommit = config.disk_overcommit;
  return runtime;
}

Result<CardParts> card_parts(const DaemonConfig& config, const Clock& clock) {
  CardParts parts;
  if (config.simulate_gpus.empty()) {
    parts.inventory = std::make_unique<NvmlInventory>(nvml_config(kDriverLibrary), clock);
    parts.provider =
        std::make_unique<DriverCardProvider>(*parts.inventory, config.node_dir() + "/driver");
    return parts;
  }
  ADL_TRY(cards, sim::parse_card_list(config.simulate_gpus));
  sim::SimulatedCardsConfig simulated;
  simulated.folder = config.run_dir + "/sim";
  simulated.state_path = simulated.folder + "/state";
  ADL_TRY(library, built_file("libnvidia-ml.so.1"));
  ADL_TRY(smi, built_file("nvidia-smi"));
  simulated.library = library;
  simulated.nvidia_smi = smi;
  ADL_TRY(provider, sim::SimulatedCards::make(simulated, cards));
  auto nvml = nvml_config(provider.library_path());
  nvml.env = {{"AUTODL_SIM_STATE", simulated.state_path}};
  parts.inventory = std::make_unique<NvmlInventory>(std::move(nvml), clock);
  parts.provider = std::make_unique<sim::SimulatedCards>(std::move(provider));
  return parts;
}

Status run_cards(const DaemonConfig& config) {
  SystemClock clock;
  ADL_TRY(parts, card_parts(config, clock));
  ADL_TRY(inventory, parts.inventory->query(Millis{10'000}));
  for (const auto& card : inventory.cards)
    fmt::print("{}\t{}\t{}\n", card_type_of(card.model, card.memory_bytes), card.model,
               card.id.str());
  return {};
}

}  // namespace autodl
