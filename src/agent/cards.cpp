// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "agent/cards.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gpu/card_names.hpp"

namespace autodl {

std::string unclean_reason(const CardInfo& card) {
  if (!card.problem.empty()) return card.problem;
  if (card.processes && !card.processes->empty())
    return fmt::format("process {} uses it and belongs to no instance",
                       card.processes->front().pid);
  const auto used = card.memory_used_bytes.value_or(0) - card.memory_reserved_bytes.value_or(0);
  if (used > kIdleMemoryBytesMax)
    return fmt::format("{} MiB of its memory are in use and belong to no instance", used >> 20);
  return {};
}

void CardTable::on_inventory(const Inventory& inventory) {
  inventory_ = inventory;
  failure_.clear();
  seen_ = true;
}

void CardTable::on_failure(const Error& error) {
  failure_ = error.message();
}

void CardTable::let_go(const InstanceId& instance) {
  std::erase_if(holders_, [&](const auto& entry) { return entry.second == instance; });
}

InstanceId CardTable::holder(const CardId& card) const {
  const auto found = holders_.find(card);
  return found == holders_.end() ? InstanceId{} : found->second;
}

const CardInfo* CardTable::find(const CardId& card) const {
  for (const auto& info : inventory_.cards)
    if (info.id == card) return &info;
  return nullptr;
}

std::optional<int> CardTable::place(const CardId& card) const {
  for (std::size_t i = 0; i < inventory_.cards.size(); ++i)
    if (inventory_.cards[i].id == card) return static_cast<int>(i);
  return std::nullopt;
}

Status CardTable::check_grant(const InstanceId& instance, const std::vector<CardId>& cards) const {
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const auto& card = cards[i];
    if (std::find(cards.begin(), cards.begin() + static_cast<std::ptrdiff_t>(i), card) !=
        cards.begin() + static_cast<std::ptrdiff_t>(i))
      return Error(ErrorKind::kInvalid, "card_twice",
                   fmt::format("card {} is named twice", card.str()));
    if (find(card) == nullptr)
      return Error(ErrorKind::kInvalid, "unknown_card",
                   fmt::format("this node has no card {}", card.str()));
    const auto held_by = holder(card);
    if (!held_by.empty() && held_by != instance)
      return Error(ErrorKind::kConflict, "card_held",
                   fmt::format("card {} is held by instance {}", card.str(), held_by.str()));
    if (held_by.empty()) ADL_TRY_STATUS(check_clean({card}));
  }
  return {};
}

Status CardTable::check_clean(const std::vector<CardId>& cards) const {
  for (const auto& card : cards) {
    const auto* info = find(card);
    const auto reason = !failure_.empty() ? failure_
                        : info == nullptr ? std::string("it does not answer any more")
                                          : unclean_reason(*info);
    if (!reason.empty())
      return Error(ErrorKind::kUnavailable, "card_not_free",
                   fmt::format("card {} can't be used: {}", card.str(), reason));
  }
  return {};
}

std::vector<ObservedCard> CardTable::observed() const {
  std::vector<ObservedCard> out;
  for (const auto& info : inventory_.cards) {
    if (info.id.empty()) continue;  // does not even tell its name
    ObservedCard card;
    card.id = info.id;
    card.model = info.model;
    card.type = card_type_of(info.model, info.memory_bytes);
    card.memory_bytes = info.memory_bytes.value_or(0);
    card.utilization_percent = info.utilization_percent;
    card.memory_used_bytes = info.memory_used_bytes;
    card.temperature_c = info.temperature_c;
    card.holder = holder(info.id);
    const auto reason = failure_.empty() ? unclean_reason(info) : failure_;
    if (!card.holder.empty()) {
      card.health = CardHealth::kHeld;
      card.reason = failure_.empty() ? info.problem : failure_;
    } else if (!reason.empty()) {
      card.health = CardHealth::kQuarantined;
      card.reason = reason;
    }
    out.push_back(std::move(card));
  }
  return out;
}

}  // namespace autodl
