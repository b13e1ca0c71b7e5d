// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "sched/queue.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace autodl {
namespace {

const NodeId kNode{"n"};

QueueItem item(const char* run, const char* type, std::int64_t count, const char* why = "") {
  return {RunId(run), kNode, type, count, why};
}

TEST(Queue_Plan, FirstComeFirstServedPerType) {
  const std::vector<FreeCards> free = {{kNode, "A", {CardId("a1"), CardId("a2")}, 3},
                                       {kNode, "B", {CardId("b1")}, 1}};
  const auto got = plan_queue({item("1", "A", 1, "pulling"), item("2", "A", 3), item("3", "A", 1),
                               item("4", "B", 1), item("5", "B", 1), item("6", "", 0)},
                              free);
  EXPECT_FALSE(got[0].granted);
  EXPECT_EQ(got[0].reason, "pulling");
  EXPECT_FALSE(got[1].granted);
  EXPECT_EQ(got[1].reason, "2 of 3 A free, 3 wanted, others are before it");
  EXPECT_FALSE(got[2].granted) << "a big run is not starved by small ones";
  EXPECT_EQ(got[2].position, 3);
  EXPECT_TRUE(got[3].granted);
  EXPECT_FALSE(got[4].granted);
  EXPECT_EQ(got[4].position, 1);
  EXPECT_TRUE(got[5].granted) << "without a card there is nothing to wait for";
}

RC_GTEST_PROP(Queue_Property, NeverGrantsACardTwiceNorMoreThanAsked, ()) {
  std::vector<FreeCards> free;
  for (const char* type : {"A", "B"}) {
    FreeCards group{kNode, type, {}, 8};
    const auto count = *rc::gen::inRange(0, 8);
    for (int i = 0; i < count; ++i) group.cards.emplace_back(type + std::to_string(i));
    free.push_back(group);
  }
  std::vector<QueueItem> items;
  const auto count = *rc::gen::inRange(0, 20);
  for (int i = 0; i < count; ++i) {
    items.push_back({RunId(std::to_string(i)), kNode, *rc::gen::element<std::string>("A", "B", "C"),
                     *rc::gen::inRange<std::int64_t>(1, 5),
                     *rc::gen::element<std::string>("", "", "pulling")});
  }
  const auto answers = plan_queue(items, free);
  RC_ASSERT(answers.size() == items.size());
  std::set<CardId> given;
  for (std::size_t i = 0; i < items.size(); ++i) {
    RC_ASSERT(answers[i].granted == answers[i].reason.empty());
    if (!answers[i].granted) {
      RC_ASSERT(answers[i].cards.empty());
      continue;
    }
    RC_ASSERT(items[i].not_ready.empty());
    RC_ASSERT(answers[i].cards.size() == static_cast<std::size_t>(items[i].gpu_count));
    for (const auto& card : answers[i].cards) {
      RC_ASSERT(given.insert(card).second);
      RC_ASSERT(card.str().starts_with(items[i].gpu_type));
    }
  }
}

}  // namespace
}  // namespace autodl
