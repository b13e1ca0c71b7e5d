// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "sched/queue.hpp"

#include <fmt/format.h>

#include <utility>

namespace autodl {

std::vector<QueueAnswer> plan_queue(const std::vector<QueueItem>& items,
                                    const std::vector<FreeCards>& free) {
  struct Line {
    std::vector<CardId> cards;
    std::int64_t total = 0;
    std::int64_t waiting = 0;
    bool blocked = false;  // somebody before waits for these cards
  };
  std::map<std::pair<NodeId, std::string>, Line> lines;
  for (const auto& group : free) {
    lines[{group.node, group.gpu_type}] = {group.cards, group.total, 0, false};
  }
  std::vector<QueueAnswer> answers;
  for (const auto& item : items) {
    QueueAnswer answer{item.run, false, {}, 1, item.not_ready};
    Line& line = lines[{item.node, item.gpu_type}];
    const auto wanted = static_cast<std::size_t>(item.gpu_type.empty() ? 0 : item.gpu_count);
    if (item.not_ready.empty()) {
      if (!line.blocked && line.cards.size() >= wanted) {
        answer.granted = true;
        const auto end = line.cards.begin() + static_cast<std::ptrdiff_t>(wanted);
        answer.cards.assign(line.cards.begin(), end);
        line.cards.erase(line.cards.begin(), end);
      } else {
        line.blocked = true;
        answer.reason = fmt::format("{} of {} {} free, {} wanted{}", line.cards.size(), line.total,
                                    item.gpu_type, item.gpu_count,
                                    line.waiting > 0 ? ", others are before it" : "");
      }
    }
    if (!answer.granted) answer.position = ++line.waiting;
    answers.push_back(std::move(answer));
  }
  return answers;
}

}  // namespace autodl
