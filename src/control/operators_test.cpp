// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What operators change: audit, disabled users, quotas, drained nodes, cordoned cards, aliases.
#include <algorithm>

#include "control/testing/core_fixture.hpp"

namespace autodl {
namespace {

using testing_support::CoreTest;

class OperatorTest : public CoreTest {
 protected:
  OperatorTest() {
    op = core->create_account({"r-0"}, "op", Role::kOperator)->account.row.id;
    as_op = {"r-1", Actor::kOperator, op};
    sync();
  }
  std::string state_of(const InstanceView& view) {
    return std::string(to_string(show(view).row.state));
  }
  InstanceView started(const char* name, const AccountId& owner) {
    auto made = core->create_instance(context, owner, request(name));
    EXPECT_TRUE(made.ok()) << made.error().message();
    sync();
    const auto got = core->start(context, owner, made->row.id.str());
    EXPECT_TRUE(got.ok()) << got.error().message();
    sync();
    return *core->instance(owner, made->row.id.str());
  }
  AccountId op;
  RequestContext as_op;
};

TEST_F(OperatorTest, Audit_SaysWhoAndWhatBeforeAndAfter) {
  ASSERT_TRUE(core->credit(as_op, anna, 5'000'000, "prize").ok());
  ASSERT_TRUE(core->flush().ok());
  const auto rows = core->audit({.action = "user.credit"});
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->size(), 2u);
  const AuditRow& row = rows->front();
  EXPECT_EQ(row.actor, op);
  EXPECT_EQ(row.actor_name, "op");
  EXPECT_EQ(row.target, "anna");
  EXPECT_EQ(row.before, R"({"balance_micro":100000000})");
  EXPECT_EQ(row.after, R"({"balance_micro":105000000})");
  EXPECT_EQ(row.reason, "prize");
  EXPECT_EQ(row.request_id, "r-1");
  open();
  EXPECT_EQ(core->audit({})->size(), 4u) << "two accounts, two credits";
}

TEST_F(OperatorTest, Audit_LostCommit_LosesTheChangeToo) {
  store.fail_at(1, false);
  ASSERT_TRUE(core->set_quota(as_op, anna, {1, {}}, "").ok());
  EXPECT_FALSE(core->flush().ok());
  open();
  EXPECT_FALSE(core->account(anna)->row.cards_max.has_value());
  EXPECT_TRUE(core->audit({.action = "quota.set"})->empty());
}

TEST_F(OperatorTest, Disable_RefusesSignInAndStopsAfterTheStatedTime) {
  const auto boris = core->create_account(as_op, "boris", Role::kUser, {"lab", 50'000'000});
  ASSERT_TRUE(boris.ok()) << boris.error().message();
  EXPECT_EQ(boris->account.group, "lab");
  EXPECT_EQ(boris->account.balance_micro, 50'000'000);
  const AccountId id = boris->account.row.id;
  const auto one = started("one", id);
  const auto two = core->create_instance(context, id, request("two"));
  ASSERT_EQ(one.row.state, InstanceState::kRunning);
  ASSERT_TRUE(core->disable_account(as_op, id, Millis(3'600'000), "left").ok());
  ASSERT_TRUE(core->flush().ok());
  EXPECT_EQ(core->account_of_token(boris->token).error().code(), "account_disabled");
  EXPECT_EQ(core->signing_key(boris->access_key).error().code(), "account_disabled");
  EXPECT_EQ(core->start(context, id, two->row.id.str()).error().code(), "account_disabled");
  const auto told = core->instance(id, one.row.id.str());
  EXPECT_NE(told->notice.find("is stopped at"), std::string::npos) << told->notice;
  pass(3'500'000);
  EXPECT_EQ(core->instance(id, one.row.id.str())->row.state, InstanceState::kRunning);
  open();  // control was restarted meanwhile
  pass(200'000);
  sync();
  const auto ended = core->instance(id, one.row.id.str());
  EXPECT_EQ(ended->row.state, InstanceState::kStopped);
  EXPECT_EQ(ended->row.reason, "stopped by the operator: the account is disabled");
  ASSERT_TRUE(core->enable_account(as_op, id, "back").ok());
  EXPECT_TRUE(core->account_of_token(boris->token).ok());
  EXPECT_TRUE(core->start(context, id, two->row.id.str()).ok());
}

TEST_F(OperatorTest, Disable_AtOnceAndNeverOneself) {
  const auto one = started("one", anna);
  EXPECT_EQ(core->disable_account(as_op, op, Millis(0), "").error().code(), "own_account");
  ASSERT_TRUE(core->disable_account(as_op, anna, Millis(0), "abuse").ok());
  sync();
  pass(20'000);
  EXPECT_EQ(state_of(one), "stopped");
}

TEST_F(OperatorTest, Quota_OfCardsWaitsAndOfInstancesRefuses) {
  ASSERT_TRUE(core->set_quota(as_op, anna, {1, 3}, "course").ok());
  const auto one = started("one", anna);
  const auto two = started("two", anna);
  EXPECT_EQ(one.row.state, InstanceState::kRunning);
  EXPECT_EQ(two.row.state, InstanceState::kQueued) << "a card is free, but not for her";
  ASSERT_TRUE(two.queue.has_value());
  EXPECT_EQ(two.queue->reason, "quota: you hold 1 of at most 1 cards at once, 1 wanted");
  auto big = request("big");
  big.gpu_count = 2;
  const auto made = core->create_instance(context, anna, big);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(start_code(*made), "quota_exceeded") << "it could never be granted";
  EXPECT_EQ(core->create_instance(context, anna, request("more")).error().code(), "quota_exceeded");
  ASSERT_TRUE(core->set_quota(as_op, anna, {-1, -1}, "over").ok());
  sync();
  EXPECT_EQ(state_of(two), "running") << "no limit any more";
  const auto rows = core->audit({.action = "quota.set"});
  EXPECT_EQ((*rows)[0].before, R"({"cards_max":1,"instances_max":3})");
  EXPECT_EQ((*rows)[0].after, R"({"cards_max":null,"instances_max":null})");
}

TEST_F(OperatorTest, Quota_OfAGroup) {
  const auto boris = core->create_account(as_op, "boris", Role::kUser, {"lab", 50'000'000});
  const auto clara = core->create_account(as_op, "clara", Role::kUser, {"lab", 50'000'000});
  ASSERT_TRUE(core->set_group_quota(as_op, "lab", {1, {}}, "").ok());
  EXPECT_EQ(core->set_group_quota(as_op, "labs", {1, {}}, "").error().code(), "no_such_group");
  const auto one = started("one", boris->account.row.id);
  const auto two = started("two", clara->account.row.id);
  EXPECT_EQ(one.row.state, InstanceState::kRunning);
  EXPECT_EQ(two.queue->reason, "quota: your group holds 1 of at most 1 cards at once, 1 wanted");
  const auto three = started("three", anna);
  EXPECT_EQ(three.row.state, InstanceState::kRunning) << "who is not in the group";
}

TEST_F(OperatorTest, Drain_NothingNewStartsAndOwnersAreTold) {
  const auto one = started("one", anna);
  const auto two = create(request("two"));
  const UtcTime until = clock.utc_now() + std::chrono::hours{5};
  EXPECT_EQ(core->drain_node(as_op, NodeId("nowhere"), {}, "").error().code(), "no_such_node");
  ASSERT_TRUE(core->drain_node(as_op, NodeId("local"), until, "new fans").ok());
  sync();
  ASSERT_EQ(start_code(two), "");
  sync();
  pass(30'000);
  EXPECT_EQ(state_of(one), "running");
  EXPECT_EQ(state_of(two), "queued");
  EXPECT_EQ(show(two).queue->reason,
            "the node local takes no new runs until " + to_rfc3339(until) + ": new fans");
  EXPECT_EQ(show(one).notice, "the node is being drained until " + to_rfc3339(until) +
                                  ": nothing new starts there, this goes on: new fans");
  const auto types = event_types(one);
  EXPECT_EQ(std::count(types.begin(), types.end(), "notice"), 1);
  open();
  sync();
  EXPECT_EQ(state_of(two), "queued") << "a drain outlives control";
  EXPECT_TRUE(core->nodes()[0].wanted.draining);
  EXPECT_EQ(core->nodes()[0].running, 1);
  ASSERT_TRUE(core->resume_node(as_op, NodeId("local"), "").ok());
  sync();
  EXPECT_EQ(state_of(two), "running");
  EXPECT_EQ(show(two).notice, "");
}

TEST_F(OperatorTest, Cordon_NotGrantedUntilUncordoned) {
  ASSERT_TRUE(core->cordon_card(as_op, CardId("GPU-0"), true, "smells").ok());
  EXPECT_EQ(core->cordon_card(as_op, CardId("GPU-9"), true, "").error().code(), "no_such_card");
  const auto one = started("one", anna);
  const auto two = started("two", anna);
  EXPECT_EQ(one.run->cards, (std::vector<std::string>{"GPU-1"}));
  EXPECT_EQ(two.row.state, InstanceState::kQueued);
  ASSERT_TRUE(core->cordon_card(as_op, CardId("GPU-0"), false, "").ok());
  sync();
  EXPECT_EQ(state_of(two), "running");
  ASSERT_TRUE(core->stop(context, anna, two.row.id.str()).ok());
  sync();
  pass(20'000);
  std::vector<std::string> facts;
  const auto history = core->card_history(CardId("GPU-0"), {}, 100);
  ASSERT_TRUE(history.ok());
  for (const auto& fact : *history) facts.push_back(fact.what);
  EXPECT_EQ(facts, (std::vector<std::string>{"freed", "granted", "uncordoned", "cordoned"}));
  EXPECT_EQ(history->front().instance, two.row.id);
  EXPECT_EQ(core->card_history(CardId("GPU-9"), {}, 100).error().code(), "no_such_card");
}

TEST_F(OperatorTest, Quarantine_BeginAndEndAreFactsOnce) {
  auto seen = node.observed();
  const auto tell = [&](CardHealth health, const char* reason) {
    seen.cards[0].health = health;
    seen.cards[0].reason = reason;
    core->on_observed(seen);
    ASSERT_TRUE(core->flush().ok());
  };
  tell(CardHealth::kQuarantined, "512 MiB are in use");
  tell(CardHealth::kQuarantined, "513 MiB are in use");
  open();
  tell(CardHealth::kQuarantined, "514 MiB are in use");
  tell(CardHealth::kFree, "");
  const auto history = core->card_history(CardId("GPU-0"), {}, 100);
  ASSERT_EQ(history->size(), 2u);
  EXPECT_EQ((*history)[0].what, "cleared");
  EXPECT_EQ((*history)[1].what, "quarantined");
  EXPECT_EQ((*history)[1].detail, "512 MiB are in use");
  EXPECT_EQ((*history)[1].type, "RTX 3090");
}

TEST_F(OperatorTest, ImageAlias_StandsForItsImage) {
  EXPECT_EQ(core->set_image_alias(as_op, "course", "NOT AN IMAGE", "").error().code(),
            "unknown_image");
  ASSERT_TRUE(core->set_image_alias(as_op, "course", "docker.io/library/busybox:1.36", "").ok());
  EXPECT_EQ(core->set_image_alias(as_op, "other", "course", "").error().code(), "bad_reference");
  auto asked = request("one");
  asked.image = "course";
  const auto made = create(asked);
  EXPECT_EQ(made.row.image, "course");
  EXPECT_EQ(made.row.image_resolved, "docker.io/library/busybox:1.36");
  ASSERT_TRUE(core->set_image_alias(as_op, "course", "", "").ok());
  EXPECT_TRUE(core->image_aliases().empty());
}

TEST_F(OperatorTest, ImageAlias_IsWhatARequestCanName) {
  const std::string image = "docker.io/library/busybox:1.36";
  ASSERT_TRUE(core->set_image_alias(as_op, "lab/pytorch:2.6", image, "").ok());
  auto asked = request("one");
  asked.image = "lab/pytorch:2.6";
  EXPECT_EQ(create(asked).row.image_resolved, image);
  for (const char* alias : {"", "课程", "two words", "../x", "-x"})
    EXPECT_EQ(core->set_image_alias(as_op, alias, image, "").error().code(), "bad_alias") << alias;
  EXPECT_EQ(core->set_image_alias(as_op, "x", "docker.io/a b", "").error().code(), "unknown_image");
}

}  // namespace
}  // namespace autodl
