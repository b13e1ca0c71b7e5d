// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "agent/facts.hpp"

#include <gtest/gtest.h>

#include "agent/cards.hpp"
#include "agent/host_key.hpp"
#include "agent/resources.hpp"
#include "agent/run_result.hpp"

namespace autodl {
namespace {

const RunId kRun("01ARZ3NDEKTSV4RRFFQ69G5FR1");

TEST(Facts_RoundTrip, KeepAll) {
  Fact fact;
  fact.kind = FactKind::kExited;
  fact.run = kRun;
  fact.cards = {CardId("GPU-1"), CardId("GPU-2")};
  fact.slot = 7;
  fact.digest = "sha256:x";
  fact.running_ms = 12;
  fact.result = {.started = true,
                 .lost = true,
                 .exit_code = 3,
                 .signal = 9,
                 .out_of_memory = true,
                 .reason = "a \"b\"\n",
                 .stopped_by = StopBy::kLease,
                 .shutdown_inside = true,
                 .start_failed = true};
  EXPECT_EQ(decode_fact(encode_fact(fact)).value(), fact);
}

TEST(Facts_Garbage, IsAnError) {
  for (const char* text :
       {"", "[]", "{}", "{\"fact\":\"new\"}", "{\"fact\":\"granted\",\"cards\":3}",
        "{\"fact\":\"disk_made\",\"slot\":\"x\"}"})
    EXPECT_FALSE(decode_fact(text).ok()) << text;
}

TEST(Facts_Compacted, GiveTheSameAgain) {
  InstanceFacts facts;
  for (const char* text :
       {R"({"fact":"disk_made","slot":3,"disk_bytes":9,"digest":"d","host_key":"k"})",
        R"({"fact":"granted","run":"R1","cards":["GPU-1"]})", R"({"fact":"created","run":"R1"})",
        R"({"fact":"ready","run":"R1","boot":"b","steady_ms":5,"utc_ms":6})",
        R"({"fact":"started","run":"R1"})",
        R"({"fact":"exited","run":"R1","running_ms":8,"result":{"started":true,"reason":""}})",
        R"({"fact":"released","run":"R1"})", R"({"fact":"granted","run":"R2"})",
        R"({"fact":"stop_asked","run":"R2","by":"rule"})",
        R"({"fact":"lease","run":"R2","boot":"b","lease_end_ms":77,"running_ms":5})"})
    apply(facts, decode_fact(text).value());
  InstanceFacts again;
  for (const auto& fact : to_facts(facts)) apply(again, fact);
  EXPECT_EQ(again, facts);
  EXPECT_EQ(again.past.at(RunId("R1")).running_ms, 8);
}

RunFacts ready_run() {
  RunFacts run{.id = kRun};
  run.ready = Moment{"boot", 1'000};
  run.ready_utc_ms = 500'000;
  run.started = true;
  run.alive_ms = 4'000;
  return run;
}

// Where the end of the running time comes from, in precedence order.
TEST(RunningTime_AtEnd, Table) {
  const auto ms = [](auto change_run, EndTime end) {
    auto run = ready_run();
    change_run(run);
    end.boot_id = end.boot_id.empty() ? "boot" : end.boot_id;
    return running_ms_at_end(run, end);
  };
  const auto as_is = [](RunFacts&) {};
  const EndTime seen{
      .seen = Millis{11'000}, .exited_utc_ms = 1, .now = Millis{60'000}, .utc_now_ms = 559'000};
  EXPECT_EQ(ms(as_is, seen), 10'000);
  EndTime file = seen;
  file.seen.reset();
  file.exited_utc_ms = 520'000;  // 39 s ago
  EXPECT_EQ(ms(as_is, file), 20'000);
  file.exited_utc_ms = 400'000;  // before it was ready: the clock was set; it lived 4 s at least
  EXPECT_EQ(ms(as_is, file), 4'000);
  file.exited_utc_ms = 900'000;  // in the future
  EXPECT_EQ(ms(as_is, file), 59'000);
  EndTime none = seen;
  none.seen.reset();
  none.exited_utc_ms.reset();
  EXPECT_EQ(ms(as_is, none), 4'000);
  EndTime rebooted = file;
  rebooted.boot_id = "later";
  rebooted.exited_utc_ms = 530'000;
  EXPECT_EQ(ms(as_is, rebooted), 30'000);
  const auto paid = [](RunFacts& run) { run.lease = Moment{"boot", 7'000}; };
  EXPECT_EQ(ms(paid, seen), 6'000);
  EXPECT_EQ(ms([](RunFacts& run) { run.ready.reset(); }, seen), 0);
}

TEST(RunResult_Record, IsTakenOnlyIfItFits) {
  auto run = ready_run();
  ContainerStatus end;
  end.exit_code = 137;
  end.exit_record = R"({"run":"01ARZ3NDEKTSV4RRFFQ69G5FR1","exit_code":4})";
  EXPECT_EQ(make_run_result(run, end, "", 1).exit_code, 4);
  end.exit_record = R"({"run":"01ARZ3NDEKTSV4RRFFQ69G5FR9","exit_code":0})";
  EXPECT_EQ(make_run_result(run, end, "", 1).signal, 9);
  end.exit_record = std::string(5'000, '{');
  EXPECT_EQ(make_run_result(run, end, "", 1).signal, 9);
}

TEST(ResourceSplit_Shares, AddUp) {
  ResourceSplit split;
  split.processors = 8;
  split.memory_bytes = std::int64_t{33} << 30;
  split.cards = 4;
  EXPECT_EQ(split.memory_for(1), std::int64_t{8} << 30);
  EXPECT_EQ(split.memory_for(4), std::int64_t{32} << 30);
  EXPECT_EQ(split.memory_for(0), std::int64_t{4} << 30);
  EXPECT_EQ(split.cpuset_for(1, 1), "2-3");
  EXPECT_EQ(split.cpuset_for(0, 4), "");
  split.processors = 2;
  EXPECT_EQ(split.cpuset_for(3, 1), "1");
  split.share_processors = true;
  EXPECT_EQ(split.cpuset_for(3, 1), "");
}

TEST(HostKey_Form, IsOpenSshs) {
  SeededRandom random(1);
  const auto key = make_host_key(random);
  EXPECT_EQ(key.public_line.size(), 80U);
  EXPECT_EQ(key.private_pem.substr(0, 36), "-----BEGIN OPENSSH PRIVATE KEY-----\n");
  EXPECT_NE(make_host_key(random).public_line, key.public_line);
}

TEST(CardTable_Unclean, Reasons) {
  CardInfo card;
  EXPECT_EQ(unclean_reason(card), "");
  card.memory_used_bytes = std::int64_t{900} << 20;
  card.memory_reserved_bytes = std::int64_t{600} << 20;
  EXPECT_EQ(unclean_reason(card), "");
  card.memory_used_bytes = std::int64_t{2'000} << 20;
  EXPECT_NE(unclean_reason(card), "");
  card.problem = "GPU is lost";
  EXPECT_EQ(unclean_reason(card), "GPU is lost");
}

}  // namespace
}  // namespace autodl
