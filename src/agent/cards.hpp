// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// CardTable: the node's cards as last seen, who holds each, and whether one may be lent. Health is
// derived at each look, so that a quarantine ends by itself when the card passes again.
//
//   free ──granted──▶ held ──released, clean──▶ free
//     └────────── not clean, lost, driver silent ──────────▶ quarantined(reason) ──clean──▶ free
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "gpu/inventory.hpp"
#include "model/observed.hpp"

namespace autodl {

// Why a card that nobody holds can't be lent; empty: it is idle and free. A driver keeps some
// memory for itself: what is above its own part by this much counts as somebody's.
inline constexpr std::int64_t kIdleMemoryBytesMax = std::int64_t{512} << 20;
std::string unclean_reason(const CardInfo& card);

class CardTable {
 public:
  void on_inventory(const Inventory& inventory);
  void on_failure(const Error& error);  // the driver did not answer

  bool seen() const { return seen_; }  // an inventory was ever taken
  const Inventory& inventory() const { return inventory_; }
  void hold(const CardId& card, const InstanceId& instance) { holders_[card] = instance; }
  void let_go(const InstanceId& instance);
  InstanceId holder(const CardId& card) const;
  // Place among the node's cards, for the split of processors.
  std::optional<int> place(const CardId& card) const;

  // Whether these may be granted to the instance: own, answering, clean, held by nobody else.
  Status check_grant(const InstanceId& instance, const std::vector<CardId>& cards) const;
  // Whether released cards are proven free. The reason of the first that is not.
  Status check_clean(const std::vector<CardId>& cards) const;

  std::vector<ObservedCard> observed() const;

 private:
  const CardInfo* find(const CardId& card) const;

  Inventory inventory_;
  std::string failure_;
  bool seen_ = false;
  std::map<CardId, InstanceId> holders_;
};

}  // namespace autodl
