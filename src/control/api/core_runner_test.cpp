// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "control/core_runner.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <latch>

#include "store/memory_store.hpp"

namespace autodl {
namespace {

// Counts commits, and holds them until the gate is opened.
class GatedStore final : public Store {
 public:
  Result<Snapshot> load() override { return inner.load(); }
  Status commit(const Batch& batch) override {
    ++commits;
    in_commit.count_down();
    gate.wait();
    return inner.commit(batch);
  }
  Result<std::vector<Event>> events(const AccountId& account, const InstanceId& instance,
                                    std::int64_t after, std::size_t limit) override {
    return inner.events(account, instance, after, limit);
  }
  Result<std::vector<LedgerEntry>> entries(const AccountId& account, const InstanceId& instance,
                                           std::int64_t after, std::size_t limit) override {
    return inner.entries(account, instance, after, limit);
  }
  Result<std::vector<LedgerEntry>> statement(const EntryFilter& filter) override {
    return inner.statement(filter);
  }
  Result<std::vector<AuditRow>> audit(const AuditFilter& filter) override {
    return inner.audit(filter);
  }
  Result<std::vector<CardFact>> card_facts(const CardId& card, std::optional<std::int64_t> before,
                                           std::size_t limit) override {
    return inner.card_facts(card, before, limit);
  }
  MemoryStore inner{"01HZZZZZZZZZZZZZZZZZZZZZZZ"};
  std::atomic<int> commits{0};
  std::latch in_commit{1};
  std::latch gate{1};
};

struct Parts {
  ManualClock clock;
  SeededRandom random{1};
  ImageCatalogue catalogue;
  SecretBox secrets{std::array<unsigned char, 32>{}};

  std::unique_ptr<ControlCore> open(Store& store) {
    auto core = ControlCore::open(CoreConfig{}, store, clock, random, catalogue, secrets);
    ADL_ASSERT(core.ok());
    return std::move(core).value();
  }
};

Task<void> make_account(CoreRunner* runner, int number, int* answered) {
  auto command = [number](ControlCore& core) {
    return core.create_account(RequestContext{}, "user " + std::to_string(number), Role::kUser);
  };
  const auto made = co_await runner->run(std::move(command));
  EXPECT_TRUE(made.ok()) << made.error().message();
  ++*answered;
}

TEST(CoreRunner, ManyCommands_FewCommitsAndNoAnswerBefore) {
  Parts parts;
  GatedStore store;
  boost::asio::io_context loop(1);
  CoreRunner::Options options;
  options.tick_every = Millis(3'600'000);
  CoreRunner runner(parts.open(store), loop.get_executor(), std::move(options));
  runner.start();
  int answered = 0;
  spawn(loop.get_executor(), make_account(&runner, 0, &answered), "first");
  loop.run_one();  // the first is queued
  store.in_commit.wait();
  for (int i = 1; i < 100; ++i)
    spawn(loop.get_executor(), make_account(&runner, i, &answered), "more");
  loop.poll();  // the others queue up behind the commit that hangs
  EXPECT_EQ(answered, 0);
  store.gate.count_down();
  const auto keep = boost::asio::make_work_guard(loop);
  while (answered < 100) loop.run_one();
  runner.stop();
  EXPECT_LE(store.commits, 3) << "the 99 that waited are one transaction";
}

TEST(CoreRunner, AfterStop_Refused) {
  Parts parts;
  MemoryStore store("01HZZZZZZZZZZZZZZZZZZZZZZZ");
  boost::asio::io_context loop(1);
  CoreRunner runner(parts.open(store), loop.get_executor(), {});
  runner.start();
  runner.stop();
  auto ask = [](CoreRunner* stopped, std::string* code) -> Task<void> {
    auto command = [](ControlCore&) -> Result<int> { return 1; };
    const auto answer = co_await stopped->run(std::move(command));
    *code = answer.ok() ? "answered" : answer.error().code();
  };
  std::string code;
  spawn(loop.get_executor(), ask(&runner, &code), "ask");
  loop.run();
  EXPECT_EQ(code, "busy");
  EXPECT_FALSE(runner.post([](ControlCore&) {}));
}

TEST(CoreRunnerDeathTest, CommitFails_ProcessEnds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Parts parts;
        MemoryStore store("01HZZZZZZZZZZZZZZZZZZZZZZZ");
        boost::asio::io_context loop(1);
        CoreRunner runner(parts.open(store), loop.get_executor(), {});
        store.fail_at(1, false);
        runner.start();
        int answered = 0;
        spawn(loop.get_executor(), make_account(&runner, 0, &answered), "doomed");
        const auto keep = boost::asio::make_work_guard(loop);
        loop.run();
      },
      ::testing::ExitedWithCode(70), "cannot go on");
}

}  // namespace
}  // namespace autodl
