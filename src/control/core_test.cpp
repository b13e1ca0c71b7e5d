// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "control/core.hpp"

#include "control/testing/core_fixture.hpp"

namespace autodl {
namespace {

using namespace testing_support;

TEST_F(CoreTest, Run_23Minutes47Seconds_CostsExactly626294Micro) {
  const auto made = create(request());
  EXPECT_EQ(made.row.name, "001");
  sync();
  EXPECT_EQ(show(made).row.state, InstanceState::kCreated);
  EXPECT_TRUE(show(made).row.disk_ready);
  ASSERT_EQ(start_code(made), "");
  sync();
  EXPECT_EQ(show(made).row.state, InstanceState::kRunning);
  EXPECT_EQ(start_code(made), "already_running");
  pass((23 * 60 + 47) * 1'000 + 400);
  node.exit(made.row.id, 0);
  sync();
  const auto done = show(made);
  EXPECT_EQ(done.row.state, InstanceState::kStopped);
  EXPECT_EQ(done.run->outcome, Outcome::kCompleted);
  EXPECT_EQ(done.run->exit_code, 0);
  EXPECT_EQ(done.runtime_s, 23 * 60 + 47);
  EXPECT_EQ(done.cost_micro, 626'294);
  const auto bill = core->bill(anna, made.row.id.str());
  EXPECT_EQ(bill->total_micro, 626'294);
  EXPECT_EQ(bill->settled_micro, 626'294);
  EXPECT_EQ(core->account(anna)->balance_micro, 100'000'000 - 626'294);
  EXPECT_EQ(core->account(anna)->held_micro, 0);
  EXPECT_EQ(event_types(made),
            (std::vector<std::string>{"created", "image_ready", "disk_ready", "start_requested",
                                      "queued", "card_granted", "starting", "running",
                                      "command_started", "exited", "stopped"}));
}

TEST_F(CoreTest, Queue_NoCardFree_WaitsInOrderAndStartsByItself) {
  std::vector<InstanceView> all;
  for (int i = 0; i < 4; ++i) all.push_back(create(request()));
  sync();
  for (const auto& item : all) ASSERT_EQ(start_code(item), "");
  sync();
  EXPECT_EQ(show(all[1]).row.state, InstanceState::kRunning);
  EXPECT_EQ(show(all[2]).row.state, InstanceState::kQueued);
  EXPECT_EQ(show(all[2]).queue->position, 1);
  EXPECT_EQ(show(all[3]).queue->position, 2);
  EXPECT_EQ(show(all[3]).queue->reason, "0 of 2 RTX 3090 free, 1 wanted, others are before it");
  EXPECT_EQ(core->gpu_types().at(0).free, 0);
  ASSERT_TRUE(core->stop(context, anna, all[2].row.name).ok());  // cancels
  EXPECT_EQ(show(all[2]).row.state, InstanceState::kStopped);
  EXPECT_EQ(show(all[2]).run->outcome, Outcome::kCancelled);
  node.exit(all[0].row.id, 3);
  sync();
  EXPECT_EQ(show(all[0]).run->outcome, Outcome::kFailed);
  EXPECT_EQ(show(all[3]).row.state, InstanceState::kRunning);
  EXPECT_EQ(node.doubly_held, 0);
}

TEST_F(CoreTest, Stop_ByUser_IsBilledToTheEndAndEndsCancelled) {
  const auto made = create(request());
  sync();
  ASSERT_EQ(start_code(made), "");
  sync();
  pass(60'000);
  ASSERT_TRUE(core->stop(context, anna, "001").ok());
  EXPECT_EQ(show(made).row.state, InstanceState::kStopping);
  EXPECT_EQ(start_code(made), "still_stopping");
  sync();
  EXPECT_EQ(show(made).row.state, InstanceState::kStopped);
  EXPECT_EQ(show(made).run->outcome, Outcome::kCancelled);
  EXPECT_EQ(show(made).cost_micro, charge_micro(kPrice, 1, 60'000));
  ASSERT_TRUE(core->stop(context, anna, "001").ok());  // as it is
  ASSERT_EQ(start_code(made), "");                     // and again: same port
  sync();
  EXPECT_EQ(show(made).row.port, made.row.port);
  EXPECT_EQ(core->runs(anna, "001")->size(), 2U);
}

TEST_F(CoreTest, Start_BalanceTooLow_IsRefusedAndChangesNothing) {
  ASSERT_TRUE(core->credit(context, anna, -99'000'000, "correction").ok());
  const auto made = create(request());
  sync();
  const auto got = core->start(context, anna, made.row.id.str());
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().kind(), ErrorKind::kPayment);
  EXPECT_EQ(got.error().code(), "balance_too_low");
  EXPECT_FALSE(core->dirty());
  EXPECT_EQ(show(made).row.state, InstanceState::kCreated);
}

TEST_F(CoreTest, Lease_BalanceUsedUp_EndsTheRunAndNotAMicroMore) {
  ASSERT_TRUE(core->credit(context, anna, 2 * kPrice - 100'000'000, "correction").ok());
  const auto made = create(request());
  sync();
  ASSERT_EQ(start_code(made), "");
  sync();
  pass(3 * 3'600'000);
  const auto done = show(made);
  EXPECT_EQ(done.row.state, InstanceState::kStopped);
  EXPECT_EQ(done.run->outcome, Outcome::kRule);
  EXPECT_EQ(done.row.reason, "the balance is used up");
  EXPECT_EQ(done.cost_micro, 2 * kPrice);
  EXPECT_EQ(core->account(anna)->balance_micro, 0);
}

TEST_F(CoreTest, Lease_SecondStart_TakesBackWhatExceedsAnHour) {
  ASSERT_TRUE(core->credit(context, anna, 10'000'000 - 100'000'000, "correction").ok());
  const auto first = create(request());
  const auto second = create(request());
  sync();
  ASSERT_EQ(start_code(first), "");
  sync();
  pass(120'000);
  EXPECT_GT(core->account(anna)->held_micro, 5 * kPrice);
  EXPECT_LT(core->account(anna)->available_micro, kPrice);
  ASSERT_EQ(start_code(second), "");
  EXPECT_EQ(show(second).row.state, InstanceState::kQueued);
  sync();
  EXPECT_EQ(show(second).row.state, InstanceState::kRunning);
  EXPECT_EQ(show(first).row.state, InstanceState::kRunning);
}

TEST_F(CoreTest, Rule_MaxRuntime_EndsAsRule) {
  auto asked = request();
  asked.max_runtime_s = 90;
  const auto made = create(asked);
  sync();
  ASSERT_EQ(start_code(made), "");
  sync();
  EXPECT_EQ(show(made).next_rule->kind, "max_runtime");
  pass(200'000);
  EXPECT_EQ(show(made).row.state, InstanceState::kStopped);
  EXPECT_EQ(show(made).run->outcome, Outcome::kRule);
  EXPECT_EQ(show(made).runtime_s, 90);
}

TEST_F(CoreTest, Start_NeverReady_FailsAfterAMinuteAndCostsNothing) {
  const auto made = create(request());
  sync();
  node.starts_hang = true;
  ASSERT_EQ(start_code(made), "");
  pass(120'000);
  EXPECT_EQ(show(made).row.state, InstanceState::kFailed);
  EXPECT_EQ(show(made).run->outcome, Outcome::kStartFailed);
  EXPECT_EQ(show(made).row.reason, "it was not ready within 60 s");
  EXPECT_EQ(show(made).cost_micro, 0);
  EXPECT_EQ(core->account(anna)->available_micro, 100'000'000);
  EXPECT_EQ(core->gpu_types().at(0).free, 2);
}

TEST_F(CoreTest, Restart_OfControl_AdoptsWhatRuns) {
  const auto made = create(request());
  sync();
  ASSERT_EQ(start_code(made), "");
  sync();
  pass(90'000);
  core.reset();
  clock.advance(seconds{600});
  node.step();
  open();
  EXPECT_FALSE(core->desired_set(NodeId("local")).has_value()) << "nothing before the node spoke";
  sync();
  EXPECT_EQ(show(made).row.state, InstanceState::kRunning);
  EXPECT_EQ(show(made).runtime_s, 690);
  node.exit(made.row.id, 0);
  sync();
  EXPECT_EQ(show(made).cost_micro, charge_micro(kPrice, 1, 690'000));
  EXPECT_EQ(node.instances().at(made.row.id).runs.begin()->second.starts, 1);
}

TEST_F(CoreTest, Node_Reboots_RunIsLostAndRestartedOnlyWhereChosen) {
  auto again = request();
  again.restart = "on-loss";
  const auto once = create(request());
  const auto twice = create(again);
  sync();
  ASSERT_EQ(start_code(once), "");
  ASSERT_EQ(start_code(twice), "");
  sync();
  pass(10'000);
  node.lose_containers();
  sync();
  EXPECT_EQ(show(once).row.state, InstanceState::kFailed);
  EXPECT_EQ(show(once).run->outcome, Outcome::kLost);
  EXPECT_EQ(show(twice).row.state, InstanceState::kRunning);
  const auto runs = *core->runs(anna, twice.row.id.str());
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].row.outcome, Outcome::kLost);
}

TEST_F(CoreTest, Node_SilentPastTheLease_RunIsLostAndItsCardsAreNotGivenAway) {
  ASSERT_TRUE(core->credit(context, anna, 2 * kPrice - 100'000'000, "correction").ok());
  const auto made = create(request());
  sync();
  ASSERT_EQ(start_code(made), "");
  sync();
  for (int i = 0; i < 30; ++i) {
    clock.advance(seconds{10});
    core->tick();
  }
  EXPECT_EQ(show(made).row.state, InstanceState::kRunning);
  EXPECT_FALSE(show(made).reachable);
  for (int i = 0; i < 1'000; ++i) {
    clock.advance(seconds{10});
    core->tick();
  }
  EXPECT_EQ(show(made).run->outcome, Outcome::kLost);
  EXPECT_EQ(core->gpu_types().at(0).free, 0) << "who knows what the node does with them";
  node.step();
  sync();
  EXPECT_EQ(core->gpu_types().at(0).free, 2);
}

TEST_F(CoreTest, Release_StopsFirstAndFreesTheEndpointOnlyWhenDestroyed) {
  const auto made = create(request());
  sync();
  ASSERT_EQ(start_code(made), "");
  sync();
  ASSERT_TRUE(core->release(context, anna, made.row.id.str()).ok());
  EXPECT_EQ(start_code(made), "released");
  EXPECT_NE(show(made).row.port, 0);
  sync();
  sync();
  EXPECT_EQ(show(made).row.state, InstanceState::kReleased);
  EXPECT_EQ(show(made).row.port, 0);
  EXPECT_TRUE(node.instances().at(made.row.id).destroyed);
  EXPECT_EQ(core->instances(anna, std::nullopt, 10, "")->items.size(), 0U);
  EXPECT_EQ(create(request("001")).row.port, made.row.port);
}

TEST_F(CoreTest, Unknown_InstanceOfANode_IsKeptAndShown) {
  DesiredInstance stranger;
  stranger.id = InstanceId("01ARZ3NDEKTSV4RRFFQ69G5FAV");
  node.on_desired({"cluster", 1, ~0ULL, {stranger}});
  core->on_observed(node.observed());
  ASSERT_EQ(core->nodes().at(0).unknown_instances.size(), 1U);
  EXPECT_TRUE(core->desired_set(NodeId("local"))->instances.empty());
}

TEST_F(CoreTest, Create_BadRequests_AreToldApart) {
  sync();
  const auto code = [&](auto change) {
    auto asked = request();
    change(asked);
    const auto got = core->create_instance(context, anna, asked);
    return got.ok() ? std::string("ok") : got.error().code();
  };
  using R = CreateRequest;
  EXPECT_EQ(code([](R& r) { r.gpu_type = "RTX 3091"; }), "unknown_card");
  EXPECT_EQ(code([](R& r) { r.image = "autodl/bsae:trixie"; }), "unknown_image");
  EXPECT_EQ(code([](R& r) { r.gpu_count = 3; }), "bad_gpu_count");
  EXPECT_FALSE(core->dirty()) << "a refused request changes nothing";
  EXPECT_EQ(code([](R& r) { r.image = "debian:trixie"; }), "ok");
  EXPECT_EQ(code([](R& r) { r.name = "一"; }), "ok");
  EXPECT_EQ(code([](R& r) { r.name = "一"; }), "name_taken");
  auto near = request();
  near.image = "autodl/bsae:trixie";
  EXPECT_EQ(core->candidates("unknown_image", near).at(0), "autodl/base:trixie");
}

TEST_F(CoreTest, Others_SeeNothingOfIt) {
  const auto made = create(request());
  const auto bob = core->create_account(context, "bob", Role::kUser)->account.row.id;
  const auto boss = core->create_account(context, "boss", Role::kOperator)->account.row.id;
  for (const auto& key : {made.row.id.str(), std::string("001")}) {
    EXPECT_EQ(core->instance(bob, key).error().code(), "no_such_instance");
    EXPECT_EQ(core->release(context, bob, key).error().code(), "no_such_instance");
  }
  EXPECT_TRUE(core->instance(boss, made.row.id.str()).ok());
}

TEST_F(CoreTest, SignIn_TokensKeysNoncesAndAnswers_OutliveARestart) {
  const auto made = core->create_account(context, "bob", Role::kUser);
  ASSERT_TRUE(made.ok());
  const AccountId bob = made->account.row.id;
  ASSERT_TRUE(core->use_nonce(made->access_key, "n1").ok());
  core->remember_answer(bob, "key", "hash", 202, "{}");
  ASSERT_TRUE(core->flush().ok());
  core.reset();
  open();
  EXPECT_EQ(*core->account_of_token(made->token), bob);
  EXPECT_EQ(core->account_of_token("adl_x").error().code(), "bad_token");
  EXPECT_EQ(core->signing_key(made->access_key)->secret_key, made->secret_key);
  EXPECT_EQ(core->use_nonce(made->access_key, "n1").error().code(), "replayed");
  EXPECT_EQ((*core->find_answer(bob, "key", "hash"))->status, 202);
  EXPECT_EQ(core->find_answer(bob, "key", "other").error().code(), "idempotency_mismatch");
  clock.advance(std::chrono::hours{25});
  EXPECT_FALSE(core->find_answer(bob, "key", "other")->has_value());
}

TEST_F(CoreTest, Flush_Fails_NothingIsAnsweredAnyMore) {
  store.fail_at(1, false);
  create(request());
  EXPECT_FALSE(core->flush().ok());
  EXPECT_FALSE(core->flush().ok());
  open();
  EXPECT_TRUE(core->instances(anna, std::nullopt, 10, "")->items.empty());
}

TEST(Catalogue_Parse, ChoosesByTheDriver) {
  const auto got = ImageCatalogue::parse(R"(
[[image]]
name = "autodl/pytorch:2.6.0-cpu-py313"
aliases = ["pytorch/pytorch:1.12-cuda11.6"]
[[image]]
name = "pytorch/pytorch:2.6.0-cuda12.4"
aliases = ["pytorch/pytorch:1.12-cuda11.6"]
cuda = "12.4"
)");
  ASSERT_TRUE(got.ok()) << got.error().message();
  const auto simulated = got->resolve("pytorch/pytorch:1.12-cuda11.6", 0, {});
  EXPECT_EQ(simulated->reference, "autodl/pytorch:2.6.0-cpu-py313");
  EXPECT_TRUE(simulated->substituted && simulated->loses_cuda);
  EXPECT_EQ(got->resolve("pytorch/pytorch:1.12-cuda11.6", 12'080, {})->reference,
            "pytorch/pytorch:2.6.0-cuda12.4");
  EXPECT_EQ(got->resolve("quay.io/x/y:1", 0, {})->reference, "quay.io/x/y:1");
  EXPECT_EQ(got->resolve("ubuntu", 0, {}).error().code(), "unknown_image");
  EXPECT_TRUE(got->resolve("ubuntu", 0, {"ubuntu"}).ok());
  EXPECT_FALSE(ImageCatalogue::parse("[[image]]\nname = ").ok());
  EXPECT_FALSE(ImageCatalogue::parse("[[image]]\nx = 1").ok());
}

}  // namespace
}  // namespace autodl
