// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// PlacementEngine: who gets which cards. `local` answers at once from the queue; an engine with a
// queue of its own (a batch system) answers `granted` when its job has begun. Called from
// ControlCore's thread with all that wait; must not block.
#pragma once

#include <vector>

#include "sched/queue.hpp"

namespace autodl {

class PlacementEngine {
 public:
  virtual ~PlacementEngine() = default;
  // One answer per waiting item, in the same order. Only cards in `free` may be granted.
  virtual std::vector<QueueAnswer> place(const std::vector<QueueItem>& waiting,
                                         const std::vector<FreeCards>& free,
                                         const Holdings& holdings) = 0;
};

// The order of sched/queue.hpp over the nodes' own cards.
class LocalPlacement final : public PlacementEngine {
 public:
  std::vector<QueueAnswer> place(const std::vector<QueueItem>& waiting,
                                 const std::vector<FreeCards>& free,
                                 const Holdings& holdings) override {
    return plan_queue(waiting, free, holdings);
  }
};

}  // namespace autodl
