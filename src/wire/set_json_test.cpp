// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "wire/set_json.hpp"

#include <gtest/gtest.h>

namespace autodl {
namespace {

const std::string kId = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

DesiredSet whole_desired() {
  DesiredRun run{RunId(kId),
                 3,
                 {CardId("GPU-1-2"), CardId("GPU-3")},
                 "echo \"hi\"\n",
                 "/data",
                 {{"A", "b c\n'\""}, {"EMPTY", ""}},
                 -5,
                 StopRequest{StopBy::kLease, 4'000}};
  DesiredInstance instance{InstanceId(kId),
                           Presence::kReleased,
                           "训练 🚀",
                           "autodl/base:trixie",
                           "sha256:ab",
                           1'000'000,
                           7,
                           {"ssh-ed25519 AAAA me"},
                           run};
  DesiredInstance bare;
  bare.id = InstanceId("01ARZ3NDEKTSV4RRFFQ69G5FAW");
  return DesiredSet{"cluster", 18'000'000'000'000'000'000U, 9, {instance, bare}};
}

ObservedSet whole_observed() {
  RunResult result;
  result.started = true;
  result.signal = 9;
  result.out_of_memory = true;
  result.reason = "memory limit of 8 GiB exceeded";
  result.stopped_by = StopBy::kRule;
  result.shutdown_inside = true;
  ObservedRun run{RunId(kId), RunPhase::kEnded,  1'800'000'000'000,
                  1'427'000,  {CardId("GPU-1")}, result};
  ObservedInstance instance;
  instance.id = InstanceId(kId);
  instance.unknown = true;
  instance.image = ImageState::kPulling;
  instance.image_percent = 40;
  instance.disk = DiskState::kFailed;
  instance.problem = "disk full";
  instance.remedy = "free some";
  instance.host_key = "ssh-ed25519 AAAA";
  instance.run = run;
  ObservedCard card{CardId("GPU-1"),
                    "NVIDIA GeForce RTX 3090",
                    "RTX 3090",
                    24LL << 30,
                    CardHealth::kQuarantined,
                    "foreign process 12",
                    100,
                    5,
                    61,
                    InstanceId(kId)};
  ObservedSet set;
  set.node = NodeId("local");
  set.boot_id = "boot";
  set.desired_revision = 12;
  set.simulated_cards = true;
  set.driver_version = "570.86.10";
  set.cuda_version = 12'080;
  set.instances = {instance};
  ObservedCard plain;
  plain.id = CardId("GPU-2");
  set.cards = {card, plain};
  set.images = {{"autodl/base:trixie", "sha256:ab", 5}};
  return set;
}

TEST(SetJson_Desired, ComesBackWhole) {
  const auto back = decode_desired(encode_desired(whole_desired()));
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(*back, whole_desired());
}

TEST(SetJson_Observed, ComesBackWhole) {
  const auto back = decode_observed(encode_observed(whole_observed()));
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(*back, whole_observed());
}

TEST(SetJson_Desired, HostileTextIsRefusedAndNamed) {
  struct Row {
    std::string text;
    std::string fault;
  };
  const std::string id = R"({"instances":[{"id":")" + kId + R"(",)";
  const Row rows[] = {
      {"", "not JSON"},
      {"[]", "not an object"},
      {R"({"epoch":-1})", "epoch: not a whole number from 0 on"},
      {R"({"instances":{}})", "instances: not a list"},
      {R"({"instances":[7]})", "instances[0]: not an object"},
      {R"({"instances":[{}]})", "instances[0].id: not an id"},
      {R"({"instances":[{"id":"../../etc"}]})", "instances[0].id: not an id"},
      {id + R"("presence":"gone"}]})", "instances[0].presence: an unknown word"},
      {id + R"("disk_bytes":1e300}]})", "instances[0].disk_bytes: not a whole number"},
      {id + R"("disk_bytes":-1}]})", "instances[0].disk_bytes: -1 is not within"},
      {id + R"("slot":99999999}]})", "instances[0].slot: 99999999 is not within"},
      {id + R"("name":"a\u0000b"}]})", "instances[0].name: holds a NUL"},
      {id + R"("name":")" + std::string(300, 'x') + R"("}]})", "instances[0].name: longer than"},
      {id + R"("run":{"id":"x"}}]})", "instances[0].run.id: not an id"},
      {id + R"("run":{"id":")" + kId + R"(","cards":["/dev/x"]}}]})",
       "instances[0].run.cards[0]: not a card's id"},
      {std::string(100, '[') + std::string(100, ']'), "not JSON"},
  };
  for (const auto& row : rows) {
    const auto got = decode_desired(row.text);
    ASSERT_FALSE(got.ok()) << row.text;
    EXPECT_EQ(got.error().kind(), ErrorKind::kInvalid);
    EXPECT_NE(got.error().message().find(row.fault), std::string::npos)
        << got.error().message() << " for " << row.text;
  }
}

TEST(SetJson_Desired, UnknownFieldsAreSkipped) {
  const auto got = decode_desired(R"({"cluster":"c","of_a_later_version":{"x":[1]}})");
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->cluster, "c");
}

TEST(SetJson_Observed, NumbersOutsideTheirBoundsAreRefused) {
  EXPECT_FALSE(
      decode_observed(R"({"node":"n","cards":[{"id":"G","utilization_percent":101}]})").ok());
  EXPECT_FALSE(decode_observed(R"({"node":"n","instances":[{"id":")" + kId + R"(","run":{"id":")" +
                               kId + R"(","running_ms":-4}}]})")
                   .ok());
  EXPECT_FALSE(decode_observed(R"({"node":""})").ok());
}

TEST(SetJson_Observed, WordsAndFiguresOfOthers_NeverMakeTheSetUnreadable) {
  auto set = whole_observed();
  set.instances[0].problem = "podman: \xff\xe8\xae" + std::string(5'000, 'x');
  set.cards[0].model = std::string("a\0b", 3);
  set.cards[0].memory_bytes = -1;
  set.cards[0].utilization_percent = 101;
  const auto back = decode_observed(encode_observed(set));
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_TRUE(back.value().instances[0].problem.starts_with("podman: \xEF\xBF\xBD"));
  EXPECT_EQ(back.value().cards[0].model, "a\xEF\xBF\xBD\x62");
  EXPECT_EQ(back.value().cards[0].memory_bytes, 0);
  EXPECT_EQ(back.value().cards[0].utilization_percent, std::nullopt);
}

TEST(SetJson_Desired, AVariableAsLongAsTheApiAllows_ComesBack) {
  auto set = whole_desired();
  set.instances[0].run->env["BIG"] = std::string(100'000, 'x');
  const auto back = decode_desired(encode_desired(set));
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(back.value(), set);
}

}  // namespace
}  // namespace autodl
