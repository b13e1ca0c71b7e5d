// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// GpuInventory: what cards this machine has and what they are doing. Implementations: NvmlInventory
// (any libnvidia-ml, NVIDIA's or the simulated one of sim/) and FakeGpuInventory (testing/).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace autodl {

struct CardProcess {
  std::int64_t pid = 0;  // in the host's pid namespace: the driver knows no other
  std::optional<std::int64_t> memory_bytes;
  bool operator==(const CardProcess&) const = default;
};

// What the driver tells of a card. What it can't tell is nullopt, never zero.
struct CardInfo {
  CardId id;                 // "GPU-5a1e…"; empty only where the card doesn't answer at all
  int index = 0;             // NVML's; changes with the set of cards: never store it
  std::string model;         // as the driver says it: "NVIDIA GeForce RTX 3090"
  std::string pci_bus_id;    // "00000000:3B:00.0"
  std::optional<int> minor;  // of /dev/nvidia<minor>; need not equal the index
  std::optional<int> compute_capability;  // major * 10 + minor: 86
  std::optional<std::int64_t> memory_bytes;
  std::optional<std::int64_t> memory_used_bytes;      // with what the driver keeps for itself
  std::optional<std::int64_t> memory_reserved_bytes;  // the driver's own part of it
  std::optional<int> utilization_percent;
  std::optional<int> memory_utilization_percent;
  std::optional<int> temperature_c;
  std::optional<int> fan_percent;
  std::optional<std::int64_t> power_mw;
  std::optional<std::int64_t> power_limit_mw;
  std::optional<int> sm_clock_mhz;
  std::optional<int> memory_clock_mhz;
  std::optional<std::vector<CardProcess>> processes;
  std::string problem;  // why the card is unusable: "GPU is lost"; empty: it answers
  bool operator==(const CardInfo&) const = default;
};

struct Inventory {
  std::string driver_version;  // "550.163.01"; empty: no driver
  int cuda_version = 0;        // highest the driver takes: major * 1000 + minor * 10; 0: not told
  bool simulated = false;      // the library says that its cards are not real
  std::vector<CardInfo> cards;
  bool operator==(const Inventory&) const = default;
};

class GpuInventory {
 public:
  virtual ~GpuInventory() = default;

  // Blocks for at most `deadline`. A machine without a driver has an inventory without cards.
  // Errors (all kUnavailable): nvml_timeout (the driver hangs; the child was killed), nvml_crashed,
  // nvml_backoff (a child died a moment ago; asked again too soon), nvml_failed (the driver says
  // why: "Driver/library version mismatch").
  virtual Result<Inventory> query(std::chrono::milliseconds deadline) = 0;
};

}  // namespace autodl
