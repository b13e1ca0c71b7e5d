// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "gpu/card_names.hpp"

#include <gtest/gtest.h>

namespace autodl {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
using Types = std::vector<std::string>;

TEST(CardName_WrittenDifferently, HasOneKey) {
  const struct {
    const char* name;
    const char* key;
  } rows[] = {
      {"RTX 3090", "rtx3090"},
      {"rtx3090", "rtx3090"},
      {"RTX-3090", "rtx3090"},
      {"NVIDIA GeForce RTX 3090", "rtx3090"},
      {"GeForce RTX 3090", "rtx3090"},
      {"nvidiageforcertx3090", "rtx3090"},
      {"  RTX\t3090 ", "rtx3090"},
      {"NVIDIA GeForce RTX 3090 Ti", "rtx3090ti"},
      {"A100 40GB", "a10040gb"},
      {"a100-40g", "a10040gb"},
      {"A100 40 GB", "a10040gb"},
      {"A100 40 G", "a10040gb"},
      {"NVIDIA A100-PCIE-40GB", "a10040gb"},
      {"NVIDIA A100-SXM4-40GB", "a10040gb"},
      {"NVIDIA H100 80GB HBM3", "h10080gb"},
      {"NVIDIA vGPU-32GB", "vgpu32gb"},
      {"NVIDIA", ""},
      {"", ""},
      {"\xe6\x98\xbe\xe5\x8d\xa1", ""},  // no Latin letter at all
  };
  for (const auto& row : rows) EXPECT_EQ(normalise_card_name(row.name), row.key) << row.name;
}

TEST(CardType_OfDriverName, IsTheCataloguesName) {
  const struct {
    const char* name;
    std::optional<std::int64_t> mib;
    const char* type;
  } rows[] = {
      {"NVIDIA GeForce RTX 3090", 24576, "RTX 3090"},
      {"NVIDIA GeForce RTX 4090 D", 24564, "RTX 4090 D"},
      {"NVIDIA A100-PCIE-40GB", 40960, "A100 40GB"},
      {"NVIDIA A100 80GB PCIe", 81920, "A100 80GB"},
      {"NVIDIA H100 PCIe", 81559, "H100 80GB"},
      {"NVIDIA H100 PCIe", std::nullopt, "H100"},
      {"Tesla V100-SXM2-16GB", 16384, "V100 16GB"},
      {"Tesla T4", 15360, "T4"},
      {"NVIDIA GeForce RTX 3060", 12288, "RTX 3060 12GB"},
  };
  for (const auto& row : rows) {
    const auto bytes = row.mib ? std::optional(*row.mib * kMiB) : std::nullopt;
    EXPECT_EQ(card_type_of(row.name, bytes), row.type) << row.name;
  }
}

TEST(CardMatch_AsPeopleWrite, FindsTheType) {
  const Types types = {"RTX 3090", "RTX 4090", "A100 40GB"};
  for (const char* name : {"RTX 3090", "rtx3090", "NVIDIA GeForce RTX 3090", "3090", "Rtx_3090"})
    EXPECT_EQ(match_card_type(name, types).type, "RTX 3090") << name;
  for (const char* name : {"A100 40GB", "a100-40g", "NVIDIA A100-PCIE-40GB"})
    EXPECT_EQ(match_card_type(name, types).type, "A100 40GB") << name;
}

TEST(CardMatch_Unknown, SuggestsTheNearest) {
  const Types types = {"RTX 3090", "RTX 4090", "A100 40GB", "A100 80GB"};
  EXPECT_EQ(match_card_type("RTX 3080", types).suggestions, (Types{"RTX 3090", "RTX 4090"}));
  EXPECT_EQ(match_card_type("A100", types).suggestions, (Types{"A100 40GB", "A100 80GB"}));
  EXPECT_EQ(match_card_type("RTX4009", types).suggestions.front(), "RTX 4090");
  for (const char* name : {"", "--", "TPU v5e", "RTX 3090; rm -rf /"}) {
    EXPECT_EQ(match_card_type(name, types).type, std::nullopt) << name;
  }
  EXPECT_TRUE(match_card_type("TPU v5e", types).suggestions.empty());
}

TEST(CardMatch_WithoutSeries_IsNotGuessedWhereTwoFit, Suggests) {
  const Types types = {"RTX 1650", "GTX 1650"};
  EXPECT_EQ(match_card_type("1650", types).type, std::nullopt);
  EXPECT_EQ(match_card_type("1650", types).suggestions.size(), 2U);
}

TEST(CardMatch_VeryLongText_IsBounded, FindsNothing) {
  EXPECT_EQ(match_card_type(std::string(1 << 20, 'x'), {"RTX 3090"}).type, std::nullopt);
}

}  // namespace
}  // namespace autodl
