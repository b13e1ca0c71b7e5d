// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "gpu/card_names.hpp"

#include <gtest/gtest.h>

namespace autodl {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

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

TEST(CardType_OfOddName, StaysBounded) {
  EXPECT_EQ(card_type_of("", std::nullopt), "");
  EXPECT_EQ(card_type_of("NVIDIA", 1LL << 30), "");
  EXPECT_LE(card_type_of(std::string(1 << 20, 'x'), std::nullopt).size(), 128U);
}

}  // namespace
}  // namespace autodl
