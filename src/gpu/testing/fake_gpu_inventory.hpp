// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// FakeGpuInventory and FakeCardProvider: scripted cards for tests and the simulation.
// Deterministic, no files, no processes. One thread.
#pragma once

#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "gpu/card_provider.hpp"
#include "gpu/inventory.hpp"

namespace autodl {

class FakeGpuInventory final : public GpuInventory {
 public:
  // `count` idle cards "GPU-fake-0"… of this model.
  static FakeGpuInventory of(int count, const std::string& model = "NVIDIA GeForce RTX 3090",
                             std::int64_t memory_bytes = 24LL << 30) {
    FakeGpuInventory fake;
    for (int i = 0; i < count; ++i) fake.add(fmt::format("GPU-fake-{}", i), model, memory_bytes);
    return fake;
  }

  CardInfo& add(const std::string& uuid, const std::string& model, std::int64_t memory_bytes) {
    CardInfo card;
    card.id = CardId(uuid);
    card.index = static_cast<int>(inventory.cards.size());
    card.minor = card.index;
    card.model = model;
    card.pci_bus_id = fmt::format("00000000:{:02X}:00.0", 0x10 + card.index);
    card.memory_bytes = memory_bytes;
    card.memory_used_bytes = 0;
    card.memory_reserved_bytes = 0;
    card.utilization_percent = 0;
    card.temperature_c = 30;
    card.processes.emplace();
    inventory.cards.push_back(std::move(card));
    return inventory.cards.back();
  }
  CardInfo* find(const CardId& id) {
    for (auto& card : inventory.cards)
      if (card.id == id) return &card;
    return nullptr;
  }

  Result<Inventory> query(std::chrono::milliseconds) override {
    ++queries;
    if (next_error.has_value()) return *std::exchange(next_error, std::nullopt);
    return inventory;
  }

  Inventory inventory{
      .driver_version = "550.163.01", .cuda_version = 12040, .simulated = true, .cards = {}};
  std::optional<Error> next_error;  // answered once
  int queries = 0;
};

class FakeCardProvider final : public CardProvider {
 public:
  Result<CardDelivery> prepare(const InstanceId& instance,
                               const std::vector<CardId>& cards) override {
    if (next_error.has_value()) return *std::exchange(next_error, std::nullopt);
    CardDelivery delivery;
    for (std::size_t i = 0; i < cards.size(); ++i)
      delivery.devices.push_back({.host_path = "/dev/null",
                                  .container_path = fmt::format("/dev/nvidia{}", i),
                                  .major = 1,
                                  .minor = 3});
    prepared[instance] = cards;
    return delivery;
  }
  Status report_load(const InstanceId& instance, const std::vector<CardLoad>& reported) override {
    loads[instance] = reported;
    return {};
  }
  Status release(const InstanceId& instance, const std::vector<CardId>&) override {
    prepared.erase(instance);
    loads.erase(instance);
    return {};
  }

  std::map<InstanceId, std::vector<CardId>> prepared;
  std::map<InstanceId, std::vector<CardLoad>> loads;
  std::optional<Error> next_error;  // answered once, by prepare
};

}  // namespace autodl
