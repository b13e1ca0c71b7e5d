// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The queue for cards as a pure plan over a snapshot: first come, first served per node and card
// type. A run that is not ready yet (its image is being pulled) holds nobody up; a ready one that
// wants more cards than are free does, so that small runs cannot starve it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/ids.hpp"

namespace autodl {

struct QueueItem {
  RunId run;
  NodeId node;
  std::string gpu_type;  // empty: wants no card
  std::int64_t gpu_count = 0;
  std::string not_ready;  // why it can't start yet; empty: ready
};

struct FreeCards {
  NodeId node;
  std::string gpu_type;
  std::vector<CardId> cards;
  std::int64_t total = 0;  // of the type on the node, free or not
};

struct QueueAnswer {
  RunId run;
  bool granted = false;
  std::vector<CardId> cards;
  std::int64_t position = 1;  // among the waiting of its node and type; 1 is next
  std::string reason;         // why it waits
};

// items in order of arrival; one answer per item, in the same order. Never grants a card twice.
std::vector<QueueAnswer> plan_queue(const std::vector<QueueItem>& items,
                                    const std::vector<FreeCards>& free);

}  // namespace autodl
