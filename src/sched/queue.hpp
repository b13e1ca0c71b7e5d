// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The queue for cards as a pure plan over a snapshot, per node and card type.
//
// Whose turn it is: runs that have waited for long come first, by arrival; then those of the user
// who holds the fewest cards, and of equal users by arrival. So one user's hundred runs keep nobody
// else waiting, and a stream of newcomers delays a run by kPatienceMs at most.
// Who waits without holding others up: a run that is not ready (its image is being pulled) and one
// that would take its user or group beyond the quota of cards held at once. A ready one that wants
// more cards than are free does hold up those behind it, so that small runs cannot starve it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"

namespace autodl {

inline constexpr std::int64_t kPatienceMs = 3'600'000;

struct QueueItem {
  RunId run;
  NodeId node;
  std::string gpu_type;  // empty: wants no card
  std::int64_t gpu_count = 0;
  std::string not_ready;  // why it can't start yet; empty: ready
  AccountId account;
  GroupId group;  // empty: none
  std::int64_t waited_ms = 0;
};

struct FreeCards {
  NodeId node;
  std::string gpu_type;
  std::vector<CardId> cards;
  std::int64_t total = 0;  // of the type on the node, free or not
};

// Cards held now, over all nodes and types, and the most that may be.
struct Holding {
  std::int64_t held = 0;
  std::optional<std::int64_t> max;  // none: no limit
};
struct Holdings {
  std::map<AccountId, Holding> users;
  std::map<GroupId, Holding> groups;
};

struct QueueAnswer {
  RunId run;
  bool granted = false;
  std::vector<CardId> cards;
  std::int64_t position = 1;  // among the waiting of its node and type; 1 is next
  std::string reason;         // why it waits
};

// items in order of arrival; one answer per item, in the same order. Never grants a card twice, and
// never takes a user or group beyond its maximum.
std::vector<QueueAnswer> plan_queue(const std::vector<QueueItem>& items,
                                    const std::vector<FreeCards>& free, Holdings holdings = {});

}  // namespace autodl
