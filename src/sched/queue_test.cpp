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

QueueItem of(const char* run, const char* user, std::int64_t count, std::int64_t waited_ms = 0) {
  return {RunId(run), kNode, "A", count, "", AccountId(user), GroupId(), waited_ms};
}

std::vector<std::string> granted(const std::vector<QueueAnswer>& answers) {
  std::vector<std::string> out;
  for (const auto& answer : answers) {
    if (answer.granted) out.push_back(answer.run.str());
  }
  return out;
}

std::vector<FreeCards> cards(int count) {
  FreeCards group{kNode, "A", {}, count};
  for (int i = 0; i < count; ++i) group.cards.emplace_back("a" + std::to_string(i));
  return {group};
}

using Runs = std::vector<std::string>;

TEST(Queue_Fairness, WhoHoldsFewestIsNext) {
  const std::vector<QueueItem> items = {of("a1", "anna", 1), of("a2", "anna", 1),
                                        of("a3", "anna", 1), of("b1", "boris", 1),
                                        of("c1", "clara", 1)};
  EXPECT_EQ(granted(plan_queue(items, cards(3))), (Runs{"a1", "b1", "c1"}));
  Holdings holdings;
  holdings.users[AccountId("clara")].held = 2;
  EXPECT_EQ(granted(plan_queue(items, cards(3), holdings)), (Runs{"a1", "a2", "b1"}));
  const auto waiting = plan_queue(items, cards(0), holdings);
  EXPECT_EQ(waiting[0].position, 1);
  EXPECT_EQ(waiting[3].position, 4);
  EXPECT_EQ(waiting[4].position, 5) << "who holds two stands behind those who hold none";
}

TEST(Queue_Fairness, WhoWaitedLongGoesFirst) {
  Holdings holdings;
  holdings.users[AccountId("anna")].held = 4;
  const std::vector<QueueItem> items = {of("old", "anna", 2, kPatienceMs), of("new", "boris", 1)};
  EXPECT_EQ(granted(plan_queue(items, cards(2), holdings)), (Runs{"old"}));
  EXPECT_EQ(granted(plan_queue(items, cards(1), holdings)), (Runs{})) << "the card is kept for it";
}

TEST(Queue_Quota, WaitsWithItsReasonAndHoldsNobodyUp) {
  Holdings holdings;
  holdings.users[AccountId("anna")] = {1, 2};
  const std::vector<QueueItem> items = {of("a1", "anna", 1), of("a2", "anna", 1),
                                        of("b1", "boris", 1)};
  const auto got = plan_queue(items, cards(3), holdings);
  EXPECT_EQ(granted(got), (Runs{"a1", "b1"}));
  EXPECT_EQ(got[1].reason, "quota: you hold 2 of at most 2 cards at once, 1 wanted");
}

TEST(Queue_Quota, OfAGroupCountsAllItsMembers) {
  Holdings holdings;
  holdings.groups[GroupId("lab")] = {2, 3};
  auto anna = of("a1", "anna", 1);
  auto boris = of("b1", "boris", 1);
  anna.group = boris.group = GroupId("lab");
  const auto got = plan_queue({anna, boris}, cards(3), holdings);
  EXPECT_EQ(granted(got), (Runs{"a1"}));
  EXPECT_EQ(got[1].reason, "quota: your group holds 3 of at most 3 cards at once, 1 wanted");
}

RC_GTEST_PROP(Queue_Property, NeverBeyondAQuotaAndNoCardIdleWithoutAReason, ()) {
  std::vector<QueueItem> items;
  const auto count = *rc::gen::inRange(0, 20);
  Holdings holdings;
  for (const char* user : {"u", "v", "w"}) {
    holdings.users[AccountId(user)] = {*rc::gen::inRange<std::int64_t>(0, 3),
                                       *rc::gen::inRange<std::int64_t>(0, 6)};
  }
  holdings.groups[GroupId("g")] = {0, *rc::gen::inRange<std::int64_t>(0, 6)};
  for (int i = 0; i < count; ++i) {
    auto next = of(std::to_string(i).c_str(), "", *rc::gen::inRange<std::int64_t>(1, 4),
                   *rc::gen::element<std::int64_t>(0, kPatienceMs));
    next.account = AccountId(*rc::gen::element<std::string>("u", "v", "w"));
    if (next.account.str() != "w") next.group = GroupId("g");
    items.push_back(next);
  }
  const auto answers = plan_queue(items, cards(*rc::gen::inRange(0, 8)), holdings);
  auto after = holdings;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!answers[i].granted) continue;
    auto& user = after.users[items[i].account];
    user.held += items[i].gpu_count;
    RC_ASSERT(user.held <= *user.max);
    if (items[i].group.empty()) continue;
    auto& group = after.groups[items[i].group];
    group.held += items[i].gpu_count;
    RC_ASSERT(group.held <= *group.max);
  }
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
