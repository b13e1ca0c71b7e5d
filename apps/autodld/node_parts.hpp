// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What the node's role and the purge both build from the configuration.
#pragma once

#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "config.hpp"
#include "gpu/card_provider.hpp"
#include "gpu/nvml_inventory.hpp"
#include "runtime/runc_runtime.hpp"

namespace autodl {

// kInvalid "no_toolbox" where the toolbox is not built.
Result<RuntimeConfig> runtime_config(const DaemonConfig& config);

// Cards: the driver's, or simulated ones behind the same library calls.
struct CardParts {
  std::unique_ptr<NvmlInventory> inventory;
  std::unique_ptr<CardProvider> provider;
};
Result<CardParts> card_parts(const DaemonConfig& config, const Clock& clock);

}  // namespace autodl
