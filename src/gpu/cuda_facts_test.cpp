// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda_facts.hpp"

#include <gtest/gtest.h>

namespace autodl {
namespace {

TEST(MaxCuda_OfDriver, FollowsTheBranch) {
  const struct {
    const char* driver;
    std::optional<int> cuda;
  } rows[] = {{"450.80.02", 11000},     {"515.65.01", 11070},      {"525.85.12", 12000},
              {"535.104.05", 12020},    {"536.40", 12020},         {"550.163.01", 12040},
              {"565.57.01", 12070},     {"580.95.05", 13000},      {"999.1", 13020},
              {"550", 12040},           {"390.157", std::nullopt}, {"", std::nullopt},
              {"v550.1", std::nullopt}, {"550x", std::nullopt}};
  for (const auto& row : rows) EXPECT_EQ(max_cuda_of_driver(row.driver), row.cuda) << row.driver;
}

TEST(CudaFit_MinorVersionCompatibility, DecidesByMajor) {
  EXPECT_EQ(cuda_fit(12040, 12040), CudaFit::kFits);
  EXPECT_EQ(cuda_fit(12040, 11080), CudaFit::kFits);
  EXPECT_EQ(cuda_fit(12000, 12090), CudaFit::kFitsMinor);
  EXPECT_EQ(cuda_fit(11070, 11080), CudaFit::kFitsMinor);
  EXPECT_EQ(cuda_fit(11080, 12010), CudaFit::kTooNew);
  EXPECT_EQ(cuda_fit(0, 12010), CudaFit::kTooNew);
  EXPECT_EQ(cuda_text(12040), "12.4");
  EXPECT_EQ(cuda_text(10020), "10.2");
}

}  // namespace
}  // namespace autodl
