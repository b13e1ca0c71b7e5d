// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// CardProvider: how granted cards get into an instance, as plain paths that the runtime mounts.
// Implementations: DriverCardProvider (real cards, card_delivery.hpp), SimulatedCards (sim/).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace autodl {

// A device node that the instance gets; also to be allowed in its device cgroup.
struct DeviceNode {
  std::string host_path;       // "/dev/nvidia1"
  std::string container_path;  // the same for real cards
  unsigned major = 0;
  unsigned minor = 0;
  bool operator==(const DeviceNode&) const = default;
};

// A read-only bind mount, nosuid and nodev.
struct CardMount {
  std::string host_path;
  std::string container_path;
  bool is_folder = false;
  bool operator==(const CardMount&) const = default;
};

// Everything a set of cards needs inside. Empty for no card.
struct CardDelivery {
  std::vector<DeviceNode> devices;
  std::vector<CardMount> mounts;
  bool operator==(const CardDelivery&) const = default;
};

// What a run does to one card, as the node sees it from outside (its cgroup).
struct CardLoad {
  CardId card;
  int utilization_percent = 0;         // 0…100
  std::int64_t memory_used_bytes = 0;  // of the run, without the driver's own part
  std::vector<std::int64_t> pids;      // host pids that use the card
  bool operator==(const CardLoad&) const = default;
};

class CardProvider {
 public:
  virtual ~CardProvider() = default;

  // Makes what is needed on the host and names it. Idempotent; the order of `cards` is the order
  // inside (0…n-1) for simulated cards. Error: unknown_card, driver_files_missing.
  virtual Result<CardDelivery> prepare(const InstanceId& instance,
                                       const std::vector<CardId>& cards) = 0;

  // About once a second for each running instance that holds cards. Simulated cards take their
  // load from it and show it inside too; real cards ignore it.
  virtual Status report_load(const InstanceId& instance, const std::vector<CardLoad>& loads) = 0;

  // After the container is gone: cards idle again, the instance's files removed. Idempotent.
  virtual Status release(const InstanceId& instance, const std::vector<CardId>& cards) = 0;
};

}  // namespace autodl
