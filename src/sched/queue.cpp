// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "sched/queue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace autodl {
namespace {

struct Line {
  std::vector<CardId> cards;
  std::int64_t total = 0;
  std::vector<std::size_t> waiting;  // indices of items, by arrival
};

class Plan {
 public:
  Plan(const std::vector<QueueItem>& items, Holdings holdings)
      : items_(items), holdings_(std::move(holdings)) {
    for (const auto& item : items) answers_.push_back({item.run, false, {}, 1, item.not_ready});
  }
  void serve(Line& line);
  void grant(std::size_t index, Line& line);
  std::vector<QueueAnswer> take() { return std::move(answers_); }

 private:
  std::int64_t held(const QueueItem& item) const {
    const auto found = holdings_.users.find(item.account);
    return found == holdings_.users.end() ? 0 : found->second.held;
  }
  // Smaller: sooner. The index is the order of arrival.
  std::tuple<bool, std::int64_t, std::size_t> turn(std::size_t index) const {
    const QueueItem& item = items_[index];
    const bool long_enough = item.waited_ms >= kPatienceMs;
    return {!long_enough, long_enough ? 0 : held(item), index};
  }
  std::string over_quota(const QueueItem& item) const;

  const std::vector<QueueItem>& items_;
  Holdings holdings_;
  std::vector<QueueAnswer> answers_;
};

std::string Plan::over_quota(const QueueItem& item) const {
  const auto check = [&](const auto& table, const auto& key, const char* whose) -> std::string {
    const auto found = table.find(key);
    if (found == table.end() || !found->second.max) return {};
    if (found->second.held + item.gpu_count <= *found->second.max) return {};
    return fmt::format("quota: {} {} of at most {} cards at once, {} wanted", whose,
                       found->second.held, *found->second.max, item.gpu_count);
  };
  auto why = check(holdings_.users, item.account, "you hold");
  if (why.empty() && !item.group.empty()) {
    why = check(holdings_.groups, item.group, "your group holds");
  }
  return why;
}

void Plan::grant(std::size_t index, Line& line) {
  const QueueItem& item = items_[index];
  QueueAnswer& answer = answers_[index];
  answer.granted = true;
  answer.reason.clear();
  if (item.gpu_type.empty()) return;
  const auto end = line.cards.begin() + static_cast<std::ptrdiff_t>(item.gpu_count);
  answer.cards.assign(line.cards.begin(), end);
  line.cards.erase(line.cards.begin(), end);
  holdings_.users[item.account].held += item.gpu_count;
  if (!item.group.empty()) holdings_.groups[item.group].held += item.gpu_count;
}

void Plan::serve(Line& line) {
  while (true) {
    std::size_t next = items_.size();
    for (const std::size_t index : line.waiting) {
      const QueueItem& item = items_[index];
      if (answers_[index].granted || !item.not_ready.empty() || !over_quota(item).empty()) continue;
      if (next == items_.size() || turn(index) < turn(next)) next = index;
    }
    if (next == items_.size() ||
        line.cards.size() < static_cast<std::size_t>(items_[next].gpu_count)) {
      break;  // nobody, or the next one waits for more: so do all behind it
    }
    grant(next, line);
  }
  std::erase_if(line.waiting, [&](std::size_t index) { return answers_[index].granted; });
  std::sort(line.waiting.begin(), line.waiting.end(),
            [&](std::size_t a, std::size_t b) { return turn(a) < turn(b); });
  std::int64_t position = 0;
  for (const std::size_t index : line.waiting) {
    const QueueItem& item = items_[index];
    QueueAnswer& answer = answers_[index];
    answer.position = ++position;
    if (answer.reason.empty()) answer.reason = over_quota(item);
    if (!answer.reason.empty()) continue;
    answer.reason =
        fmt::format("{} of {} {} free, {} wanted{}", line.cards.size(), line.total, item.gpu_type,
                    item.gpu_count, position > 1 ? ", others are before it" : "");
  }
}

}  // namespace

std::vector<QueueAnswer> plan_queue(const std::vector<QueueItem>& items,
                                    const std::vector<FreeCards>& free, Holdings holdings) {
  std::map<std::pair<NodeId, std::string>, Line> lines;
  for (const auto& group : free) {
    lines[{group.node, group.gpu_type}] = {group.cards, group.total, {}};
  }
  Plan plan(items, std::move(holdings));
  for (std::size_t i = 0; i < items.size(); ++i) {
    Line& line = lines[{items[i].node, items[i].gpu_type}];
    if (items[i].gpu_type.empty() && items[i].not_ready.empty()) {
      plan.grant(i, line);  // without a card there is nothing to wait for
    } else {
      line.waiting.push_back(i);
    }
  }
  for (auto& [key, line] : lines) plan.serve(line);
  return plan.take();
}

}  // namespace autodl
