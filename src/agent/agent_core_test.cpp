// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_core.hpp"

#include <gtest/gtest.h>

#include "agent/testing/agent_world.hpp"

namespace autodl {
namespace {

const InstanceId kA("01ARZ3NDEKTSV4RRFFQ69G5FAA");
const InstanceId kB("01ARZ3NDEKTSV4RRFFQ69G5FAB");
const RunId kRun1("01ARZ3NDEKTSV4RRFFQ69G5FR1");
const RunId kRun2("01ARZ3NDEKTSV4RRFFQ69G5FR2");
const CardId kCard0("GPU-fake-0");

class AgentCoreTest : public testing::Test {
 protected:
  DesiredInstance instance(const InstanceId& id, std::uint32_t slot = 0) {
    DesiredInstance one;
    one.id = id;
    one.name = "001";
    one.image = "autodl/base:trixie";
    one.disk_bytes = std::int64_t{1} << 30;
    one.slot = slot;
    return one;
  }
  static DesiredRun run(const RunId& id, std::vector<CardId> cards = {kCard0}) {
    DesiredRun wanted;
    wanted.id = id;
    wanted.cards = std::move(cards);
    wanted.command = "python train.py";
    wanted.paid_until_ms = 3'600'000;
    return wanted;
  }
  void tell(std::vector<DesiredInstance> instances) {
    DesiredSet set;
    set.cluster = "C";
    set.epoch = epoch_;
    set.revision = ++revision_;
    set.instances = std::move(instances);
    ASSERT_TRUE(world_.core->on_desired(set).ok());
  }
  // Brings instance A up with run 1.
  DesiredInstance running() {
    auto one = instance(kA);
    one.run = run(kRun1);
    tell({one});
    world_.settle();
    EXPECT_EQ(world_.seen(kA).run->phase, RunPhase::kRunning);
    return one;
  }
  void ends_at(const InstanceId& id, const RunId& run_id) {
    world_.settle(Millis{20'000});
    const auto seen = world_.seen(id);
    ASSERT_TRUE(seen.run.has_value());
    EXPECT_EQ(seen.run->id, run_id);
    EXPECT_EQ(seen.run->phase, RunPhase::kEnded);
  }

  ManualClock clock_;
  AgentWorld world_{clock_};
  std::uint64_t epoch_ = 1, revision_ = 0;
};

TEST_F(AgentCoreTest, Present_ImageDiskAndKeyAreMade) {
  tell({instance(kA)});
  world_.settle();
  const auto seen = world_.seen(kA);
  EXPECT_EQ(seen.image, ImageState::kReady);
  EXPECT_EQ(seen.disk, DiskState::kReady);
  EXPECT_EQ(seen.host_key.substr(0, 20), "ssh-ed25519 AAAAC3Nz");
  EXPECT_FALSE(seen.run.has_value());
  EXPECT_TRUE(world_.runtime.has_disk(kA));
}

TEST_F(AgentCoreTest, Run_StartsOnceAndItsTimeRuns) {
  running();
  clock_.advance(Millis{90'000});
  EXPECT_EQ(world_.seen(kA).run->running_ms / 1000, 90);
  EXPECT_EQ(world_.links.starts[kRun1], 1);
  const auto setup = world_.links.last_setup[kA];
  EXPECT_EQ(setup.command, "python train.py");
  EXPECT_EQ(setup.env.at("PATH"), "/usr/bin");
  EXPECT_TRUE(setup.cards);
  EXPECT_EQ(world_.core->cards().holder(kCard0), kA);
}

TEST_F(AgentCoreTest, CommandEnds_ExitCodeAndCardComeBack) {
  running();
  clock_.advance(Millis{5'000});
  world_.end_command(kA, kRun1, 3);
  world_.core->on_exit(kA);
  clock_.advance(Millis{0});
  ends_at(kA, kRun1);
  const auto ended = *world_.seen(kA).run;
  EXPECT_EQ(ended.result->exit_code, 3);
  EXPECT_TRUE(ended.result->started);
  EXPECT_NEAR(static_cast<double>(ended.running_ms), 5'000, 1);
  EXPECT_TRUE(ended.cards.empty());
  EXPECT_TRUE(world_.core->cards().holder(kCard0).empty());
  EXPECT_FALSE(world_.runtime.has_container(kA));
}

TEST_F(AgentCoreTest, UserStops_StagedThenEnded) {
  auto one = running();
  one.run->stop = StopRequest{StopBy::kUser, 10'000};
  tell({one});
  ends_at(kA, kRun1);
  EXPECT_EQ(world_.links.stops[kA].grace_ms, 10'000);
  EXPECT_EQ(world_.seen(kA).run->result->stopped_by, StopBy::kUser);
}

TEST_F(AgentCoreTest, IgnoresStop_IsKilledAfterTheGrace) {
  auto one = running();
  world_.obeys_stop = false;
  one.run->stop = StopRequest{StopBy::kUser, 4'000};
  tell({one});
  world_.settle(Millis{5'000});
  EXPECT_TRUE(world_.runtime.running(kA));
  ends_at(kA, kRun1);
  EXPECT_EQ(world_.seen(kA).run->result->signal, 9);
}

TEST_F(AgentCoreTest, LeaseOver_TheNodeEndsItAlone) {
  auto one = instance(kA);
  one.run = run(kRun1);
  one.run->paid_until_ms = 60'000;
  tell({one});
  world_.settle();
  world_.settle(Millis{55'000});
  EXPECT_EQ(world_.seen(kA).run->phase, RunPhase::kRunning);
  world_.settle(Millis{10'000});
  ends_at(kA, kRun1);
  const auto ended = *world_.seen(kA).run;
  EXPECT_EQ(ended.result->stopped_by, StopBy::kLease);
  EXPECT_LE(ended.running_ms, 60'000);
}

TEST_F(AgentCoreTest, LeaseIsKeptOverARestart) {
  auto one = instance(kA);
  one.run = run(kRun1);
  one.run->paid_until_ms = 60'000;
  tell({one});
  world_.settle(Millis{1'000});
  world_.boot();  // and control stays silent
  world_.settle(Millis{70'000});
  EXPECT_FALSE(world_.runtime.running(kA));
  EXPECT_EQ(world_.seen(kA).run->result->stopped_by, StopBy::kLease);
}

TEST_F(AgentCoreTest, LeaseIsRecordedBeforeTheContainerIsMade) {
  auto one = instance(kA);
  one.run = run(kRun1);
  one.run->paid_until_ms = 60'000;
  tell({one});
  while (!world_.runtime.running(kA)) ASSERT_TRUE(world_.step());
  world_.boot();  // ready was not even seen, and control stays silent
  world_.settle(Millis{80'000});
  EXPECT_FALSE(world_.runtime.running(kA));
}

TEST_F(AgentCoreTest, ShortenedLease_IsAcknowledgedOnlyOnceRecorded) {
  auto one = running();
  one.run->paid_until_ms = 10'000;
  world_.journal.fail_after = 0;
  tell({one});
  EXPECT_EQ(world_.core->observed_set().desired_revision, revision_ - 1);
  world_.step();  // can't be written
  EXPECT_EQ(world_.core->observed_set().desired_revision, revision_ - 1);
  const auto before = world_.core->observed_version();
  world_.settle(Millis{1'000});
  EXPECT_EQ(world_.core->observed_set().desired_revision, revision_);
  EXPECT_GT(world_.core->observed_version(), before) << "told at once";
  world_.boot();  // control gave the money away and is silent
  world_.settle(Millis{20'000});
  EXPECT_FALSE(world_.runtime.running(kA));
}

TEST_F(AgentCoreTest, LeaseShortenedWhileALongerOneIsRecorded_StaysShort) {
  auto one = running();
  one.run->paid_until_ms = 2'000'000;
  tell({one});
  const auto actions = world_.core->take_actions();
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_EQ(actions[0].kind, ActionKind::kRecord);
  one.run->paid_until_ms = 10'000;
  tell({one});
  world_.core->on_result(kA, world_.runner->run(actions[0]));
  EXPECT_EQ(world_.core->observed_set().desired_revision, revision_ - 2) << "not recorded yet";
  world_.settle(Millis{20'000});
  EXPECT_FALSE(world_.runtime.running(kA));
}

TEST_F(AgentCoreTest, Unknown_IsKeptAndReportedPastItsLease) {
  running();
  tell({});
  EXPECT_TRUE(world_.seen(kA).unknown);
  world_.settle(Millis{4'000'000});
  EXPECT_TRUE(world_.runtime.running(kA));
}

TEST_F(AgentCoreTest, OtherRunWanted_TheOldOneGoesOn) {
  auto one = running();
  one.run = run(kRun2);
  tell({one});
  world_.settle(Millis{5'000});
  EXPECT_EQ(world_.seen(kA).run->id, kRun1);
  world_.end_command(kA, kRun1, 0);
  world_.core->on_exit(kA);
  world_.settle(Millis{5'000});
  EXPECT_EQ(world_.seen(kA).run->id, kRun2);
  EXPECT_EQ(world_.links.starts[kRun2], 1);
}

TEST_F(AgentCoreTest, OldRunComesAgain_IsReportedNotRepeated) {
  auto one = running();
  world_.end_command(kA, kRun1, 5);
  world_.core->on_exit(kA);
  ends_at(kA, kRun1);
  auto second = one;
  second.run = run(kRun2);
  tell({second});
  world_.settle(Millis{1'000});
  world_.end_command(kA, kRun2, 0);
  world_.core->on_exit(kA);
  ends_at(kA, kRun2);
  tell({one});
  ends_at(kA, kRun1);
  EXPECT_EQ(world_.seen(kA).run->result->exit_code, 5);
  EXPECT_EQ(world_.links.starts[kRun1], 1);
}

TEST_F(AgentCoreTest, CardHeldByAnother_IsRefusedWithAReason) {
  const auto first = running();
  auto second = instance(kB, 1);
  second.run = run(kRun2);
  tell({first, second});
  ends_at(kB, kRun2);
  EXPECT_TRUE(world_.seen(kB).run->result->start_failed);
  EXPECT_NE(world_.seen(kB).run->result->reason.find("is held by instance"), std::string::npos);
  EXPECT_TRUE(world_.runtime.running(kA));
}

TEST_F(AgentCoreTest, ForeignCard_IsRefused) {
  auto one = instance(kA);
  one.run = run(kRun1, {CardId("GPU-someone-else")});
  tell({one});
  ends_at(kA, kRun1);
  EXPECT_NE(world_.seen(kA).run->result->reason.find("no card"), std::string::npos);
}

TEST_F(AgentCoreTest, CardNotFreeAfterwards_IsQuarantinedUntilItIs) {
  running();
  auto* card = world_.inventory.find(kCard0);
  card->processes->push_back({.pid = 4711});
  world_.end_command(kA, kRun1, 0);
  world_.core->on_exit(kA);
  world_.settle(Millis{5'000});
  EXPECT_EQ(world_.seen(kA).run->phase, RunPhase::kStopping);  // not proven yet
  ends_at(kA, kRun1);
  EXPECT_EQ(world_.core->cards().observed()[0].health, CardHealth::kQuarantined);
  card->processes->clear();
  world_.core->on_inventory(world_.inventory.query(Millis{1}));
  EXPECT_EQ(world_.core->cards().observed()[0].health, CardHealth::kFree);
}

TEST_F(AgentCoreTest, OutOfMemory_IsToldWithTheLimit) {
  running();
  world_.runtime.kill_out_of_memory(kA);
  world_.core->on_exit(kA);
  ends_at(kA, kRun1);
  const auto result = *world_.seen(kA).run->result;
  EXPECT_TRUE(result.out_of_memory);
  EXPECT_EQ(result.reason, "memory limit of 31.5 GiB exceeded (peak 31.5 GiB)");
}

TEST_F(AgentCoreTest, ShutdownTypedInside_EndsIt) {
  running();
  world_.core->on_init_event({InitEvent::Kind::kShutdown, kA, kRun1, {}});
  ends_at(kA, kRun1);
  EXPECT_TRUE(world_.seen(kA).run->result->shutdown_inside);
}

TEST_F(AgentCoreTest, ContainerVanishes_IsLostNeverStartedAgain) {
  running();
  world_.settle(Millis{1'000});
  world_.runtime.lose_container(kA);
  world_.boot();
  auto one = instance(kA);
  one.run = run(kRun1);
  tell({one});
  ends_at(kA, kRun1);
  EXPECT_TRUE(world_.seen(kA).run->result->lost);
  EXPECT_EQ(world_.links.starts[kRun1], 1);
  EXPECT_EQ(world_.runtime.starts_of(kRun1), 1);
}

TEST_F(AgentCoreTest, Reboot_TheRunIsLostAndTheInstanceStartsAnew) {
  auto one = running();
  world_.settle(Millis{100'000});
  world_.runtime.reboot();
  clock_.reboot("00000000-0000-4000-8000-000000000002");
  world_.boot();
  tell({one});
  ends_at(kA, kRun1);
  EXPECT_TRUE(world_.seen(kA).run->result->lost);
  one.run = run(kRun2);
  tell({one});
  world_.settle(Millis{1'000});
  EXPECT_EQ(world_.seen(kA).run->phase, RunPhase::kRunning);
}

TEST_F(AgentCoreTest, EndedWhileTheNodeWasDead_TimeComesFromTheExitFile) {
  running();
  world_.settle(Millis{10'000});
  world_.end_command(kA, kRun1, 0);
  const auto ended = clock_.utc_now();
  clock_.advance(Millis{30'000});
  world_.boot();
  auto found = world_.runtime.scan().value();
  found[0].container.exited_utc_ms = to_unix_ms(ended);
  world_.core =
      std::make_unique<AgentCore>(AgentConfig{.split = world_.split}, clock_, world_.journal);
  ASSERT_TRUE(world_.core->load(found).ok());
  ends_at(kA, kRun1);
  EXPECT_NEAR(static_cast<double>(world_.seen(kA).run->running_ms), 10'000, 500);
}

TEST_F(AgentCoreTest, NodeRestarts_AdoptsAndSendsGoAgainWithoutEffect) {
  const auto one = running();
  world_.boot();
  EXPECT_EQ(world_.core->cards().holder(kCard0), kA);
  tell({one});
  world_.settle(Millis{1'000});
  EXPECT_EQ(world_.seen(kA).run->phase, RunPhase::kRunning);
  EXPECT_EQ(world_.links.connects, 2);
  EXPECT_EQ(world_.links.starts[kRun1], 1);
}

TEST_F(AgentCoreTest, KeysChange_ArePassedOn) {
  auto one = running();
  one.authorized_keys = {"ssh-ed25519 AAAA me"};
  tell({one});
  world_.settle();
  ASSERT_EQ(world_.links.last_keys[kA].size(), 1U);
  EXPECT_EQ(world_.links.last_keys[kA][0].public_key, "ssh-ed25519 AAAA me");
}

TEST_F(AgentCoreTest, StoppedBeforeItBegan_NothingStarts) {
  auto one = instance(kA);
  one.run = run(kRun1);
  one.run->stop = StopRequest{};
  tell({one});
  ends_at(kA, kRun1);
  EXPECT_FALSE(world_.seen(kA).run->result->started);
  EXPECT_EQ(world_.runtime.starts_of(kRun1), 0);
}

TEST_F(AgentCoreTest, UnknownImage_IsToldAndTheRunFails) {
  auto one = instance(kA);
  one.image = "nobody/has:this";
  one.run = run(kRun1);
  tell({one});
  ends_at(kA, kRun1);
  const auto seen = world_.seen(kA);
  EXPECT_EQ(seen.image, ImageState::kFailed);
  EXPECT_NE(seen.problem.find("nobody/has:this"), std::string::npos);
  EXPECT_TRUE(seen.run->result->start_failed);
}

TEST_F(AgentCoreTest, CreateFails_RetriedThenGivenUpWithTheReason) {
  world_.runtime.fail_next("create_container",
                           Error(ErrorKind::kUnavailable, "runc_failed", "runc said no"), 1);
  auto one = instance(kA);
  one.run = run(kRun1);
  tell({one});
  world_.settle(Millis{2'000});
  EXPECT_EQ(world_.seen(kA).run->phase, RunPhase::kRunning);

  world_.runtime.fail_next("create_container",
                           Error(ErrorKind::kUnavailable, "runc_failed", "runc said no"), 99);
  auto two = instance(kB, 1);
  two.run = run(kRun2, {});
  tell({one, two});
  ends_at(kB, kRun2);
  EXPECT_EQ(world_.seen(kB).run->result->reason, "runc said no");
}

TEST_F(AgentCoreTest, Tombstone_DestroysAndIsForgottenAfterwards) {
  auto one = running();
  one.presence = Presence::kReleased;
  tell({one});
  world_.settle(Millis{20'000});
  EXPECT_TRUE(world_.seen(kA).destroyed);
  EXPECT_FALSE(world_.runtime.has_disk(kA));
  EXPECT_FALSE(world_.runtime.has_container(kA));
  tell({});
  world_.settle();
  EXPECT_TRUE(world_.core->observed_set().instances.empty());
  EXPECT_FALSE(world_.journal.files.contains(kA.str()));
}

TEST_F(AgentCoreTest, OtherClusterOrLowerEpoch_IsRefusedAlsoAfterARestart) {
  epoch_ = 5;
  running();
  DesiredSet set;
  set.cluster = "C";
  set.epoch = 4;
  for (int restart = 0; restart < 2; ++restart) {
    EXPECT_EQ(world_.core->on_desired(set).error().code(), "old_epoch");
    auto other = set;
    other.cluster = "D";
    other.epoch = 9;
    EXPECT_EQ(world_.core->on_desired(other).error().code(), "wrong_cluster");
    world_.boot();
  }
  EXPECT_TRUE(world_.runtime.running(kA));
}

TEST_F(AgentCoreTest, EpochCannotBeWritten_NothingOfItIsDone) {
  world_.journal.fail_after = 0;
  DesiredSet set;
  set.cluster = "C";
  set.epoch = 1;
  set.instances = {instance(kA)};
  EXPECT_FALSE(world_.core->on_desired(set).ok());
  world_.settle();
  EXPECT_FALSE(world_.runtime.has_disk(kA));
}

TEST_F(AgentCoreTest, DamagedJournal_TheInstanceIsLeftAlone) {
  const auto one = running();
  world_.journal.files[kA.str()].push_back("not a fact");
  world_.boot();
  auto gone = one;
  gone.presence = Presence::kReleased;
  tell({gone});
  world_.settle(Millis{20'000});
  EXPECT_TRUE(world_.runtime.running(kA));
  EXPECT_NE(world_.seen(kA).problem.find("journal record"), std::string::npos);
}

// A whole life (make, run, command ends, second run, stop, release), cut off at every single call
// or failing there: whatever happens, each command starts once and nothing is left at the end.
class AgentFaultTest : public AgentCoreTest {
 protected:
  struct Killed {};
  enum class Fault { kNone, kKill, kKillAfter, kFail, kJournal };

  template <class Fn>
  void unless_killed(Fn work) {
    try {
      work();
    } catch (const Killed&) {
      ++kills_;
      world_.boot();
    } catch (const FakeRuntime::Cut&) {
      ++kills_;
      world_.boot();
    }
  }
  void live(const DesiredInstance& one, Millis time) {
    const auto end = clock_.steady_now() + time;
    while (clock_.steady_now() < end) {
      unless_killed([&] {
        tell({one});
        world_.settle();
        clock_.advance(Millis{500});
        tell({one});
        world_.settle();
      });
    }
  }
  // True: the fault came to pass.
  bool life(Fault fault, int at) {
    int calls = 0;
    bool fired = false;
    if (fault == Fault::kJournal) {
      world_.journal.fail_after = at;
    } else {
      world_.runtime.on_call = [&](const std::string& call, const InstanceId&, auto) {
        if (call == "scan" || fired || calls++ != at) return;
        fired = true;
        if (fault == Fault::kKill) throw Killed{};
        if (fault == Fault::kKillAfter) world_.runtime.cut_next(call);
        if (fault == Fault::kFail)
          world_.runtime.fail_next(call, Error(ErrorKind::kUnavailable, "fault", "it failed"));
      };
    }
    auto one = instance(kA);
    live(one, Millis{2'000});
    one.run = run(kRun1);
    live(one, Millis{5'000});
    unless_killed([&] {
      world_.end_command(kA, kRun1, 0);
      world_.core->on_exit(kA);
    });
    live(one, Millis{20'000});
    EXPECT_EQ(world_.seen(kA).run->phase, RunPhase::kEnded);
    one.run = run(kRun2);
    live(one, Millis{5'000});
    one.run->stop = StopRequest{};
    live(one, Millis{40'000});
    EXPECT_EQ(world_.seen(kA).run->phase, RunPhase::kEnded);
    one.presence = Presence::kReleased;
    live(one, Millis{20'000});
    EXPECT_TRUE(world_.seen(kA).destroyed);
    unless_killed([&] {
      tell({});
      world_.settle(Millis{2'000});
    });
    unless_killed([&] {
      tell({});
      world_.settle(Millis{2'000});
    });
    EXPECT_TRUE(world_.core->observed_set().instances.empty());
    EXPECT_FALSE(world_.runtime.has_disk(kA));
    EXPECT_FALSE(world_.runtime.has_container(kA));
    EXPECT_TRUE(world_.core->cards().holder(kCard0).empty());
    EXPECT_LE(world_.links.starts[kRun1], 1);
    EXPECT_LE(world_.links.starts[kRun2], 1);
    EXPECT_LE(world_.runtime.starts_of(kRun1), 2);  // PID 1 may start again before ready
    world_.runtime.on_call = nullptr;
    if (fault == Fault::kJournal) return !world_.journal.fail_after.has_value();
    return fired;
  }
  int kills_ = 0;
};

TEST_F(AgentFaultTest, NoFault_BothCommandsRan) {
  EXPECT_FALSE(life(Fault::kNone, 100'000));
  EXPECT_EQ(world_.links.starts[kRun1], 1);
  EXPECT_EQ(world_.links.starts[kRun2], 1);
}

TEST(AgentFault_EveryCall, OnceOrNever) {
  struct Probe : AgentFaultTest {
    using AgentFaultTest::Fault;
    using AgentFaultTest::kills_;
    using AgentFaultTest::life;
    void TestBody() override {}
  };
  for (const auto fault : {Probe::Fault::kKill, Probe::Fault::kKillAfter, Probe::Fault::kFail,
                           Probe::Fault::kJournal}) {
    // The first write of all is the cluster's name: where that fails the set is refused (below).
    int at = fault == Probe::Fault::kJournal ? 1 : 0;
    for (;; ++at) {
      SCOPED_TRACE(testing::Message() << "fault " << static_cast<int>(fault) << " at " << at);
      Probe probe;
      if (!probe.life(fault, at) || testing::Test::HasFailure()) break;
      ASSERT_LT(at, 500);
    }
    EXPECT_GT(at, 10);
  }
}

}  // namespace
}  // namespace autodl
