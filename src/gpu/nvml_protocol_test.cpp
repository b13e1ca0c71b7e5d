// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_protocol.hpp"

#include <gtest/gtest.h>

#include "gpu/testing/fake_gpu_inventory.hpp"

namespace autodl {
namespace {

TEST(NvmlProtocol_RoundTrip, KeepsWhatIsAndWhatCantBeTold) {
  auto fake = FakeGpuInventory::of(2);
  auto& card = fake.inventory.cards[0];
  card.power_mw = 311'000;
  card.fan_percent = 0;
  card.processes = std::vector<CardProcess>{{42, 1 << 20}, {43, std::nullopt}};
  fake.inventory.cards[1].temperature_c = std::nullopt;
  fake.inventory.cards[1].processes = std::nullopt;
  fake.inventory.cards[1].problem = "Unknown Error";
  auto line = print_inventory(fake.inventory);
  ASSERT_EQ(line.back(), '\n');
  line.pop_back();
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto parsed = parse_inventory(line);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  EXPECT_EQ(*parsed, fake.inventory);
}

TEST(NvmlProtocol_Garbage_IsAnError, NotACrash) {
  for (const char* line : {"", "null", "[]", "{", "{}", "{\"cards\":1}", "{\"cards\":[1]}",
                           "{\"cards\":[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]}", "\xff\xfe"})
    EXPECT_EQ(parse_inventory(line).error().code(), "nvml_crashed") << line;
  EXPECT_EQ(parse_inventory(std::string(kNvmlAnswerMax + 1, ' ')).error().code(), "nvml_crashed");
  std::string many = R"({"cards":[)";
  for (std::size_t i = 0; i <= kNvmlCardsMax; ++i) many += i == 0 ? "{}" : ",{}";
  EXPECT_EQ(parse_inventory(many + "]}").error().code(), "nvml_crashed");
}

TEST(NvmlProtocol_WrongTypes_AreNotTold, NeverZero) {
  const auto parsed =
      parse_inventory(R"({"cards":[{"uuid":7,"memory":-1,"temperature":"hot","fan":9999999999,)"
                      R"("utilization":1.5,"model":"a\u001b[31m\nb"}]})");
  ASSERT_TRUE(parsed.ok());
  const auto& card = parsed->cards.at(0);
  EXPECT_TRUE(card.id.empty());
  EXPECT_EQ(card.memory_bytes, std::nullopt);
  EXPECT_EQ(card.temperature_c, std::nullopt);
  EXPECT_EQ(card.fan_percent, std::nullopt);
  EXPECT_EQ(card.utilization_percent, std::nullopt);
  EXPECT_EQ(card.model, "a[31mb");
}

TEST(NvmlProtocol_LongOrWrongNames, GoOnAsUtf8AndAreNoIds) {
  std::string model = "x";
  for (int i = 0; i < 40; ++i) model += "\xE8\xAE\xAD";
  const auto inventory =
      parse_inventory(R"({"cards":[{"uuid":"GPU-1/../2","model":")" + model + R"("}]})");
  ASSERT_TRUE(inventory.ok());
  EXPECT_TRUE(inventory.value().cards[0].id.empty());
  EXPECT_EQ(inventory.value().cards[0].model, model.substr(0, 94));
}

TEST(NvmlProtocol_DriverError_IsPassedOn, WithItsWords) {
  auto line = print_nvml_error("Driver/library version mismatch");
  line.pop_back();
  const auto parsed = parse_inventory(line);
  EXPECT_EQ(parsed.error().code(), "nvml_failed");
  EXPECT_NE(parsed.error().message().find("version mismatch"), std::string::npos);
}

TEST(KeepLostCards_CardWithoutName_GetsItsUuidBack, AndNoFigures) {
  const auto known = FakeGpuInventory::of(3).inventory;
  auto fresh = known;
  fresh.cards[1] = CardInfo{};
  fresh.cards[1].index = 1;
  fresh.cards[1].problem = "GPU is lost";
  const auto merged = keep_lost_cards(known.cards, fresh);
  ASSERT_EQ(merged.cards.size(), 3U);
  EXPECT_EQ(merged.cards[1].id, known.cards[1].id);
  EXPECT_EQ(merged.cards[1].problem, "GPU is lost");
  EXPECT_EQ(merged.cards[1].temperature_c, std::nullopt);
  EXPECT_EQ(merged.cards[0], known.cards[0]);
}

TEST(KeepLostCards_CardNoLongerListed_IsKept, WithReason) {
  const auto known = FakeGpuInventory::of(2).inventory;
  auto fresh = known;
  fresh.cards.pop_back();
  const auto merged = keep_lost_cards(known.cards, fresh);
  ASSERT_EQ(merged.cards.size(), 2U);
  EXPECT_EQ(merged.cards[1].id, known.cards[1].id);
  EXPECT_FALSE(merged.cards[1].problem.empty());
  // And once it answers again it is as it was.
  EXPECT_EQ(keep_lost_cards(merged.cards, known), known);
}

}  // namespace
}  // namespace autodl
