// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda_facts.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

namespace autodl {
namespace {

// First driver branch → the CUDA version it reports.
constexpr std::array<std::pair<int, int>, 23> kBranches = {{
    {440, 10020}, {450, 11000}, {455, 11010}, {460, 11020}, {465, 11030}, {470, 11040},
    {495, 11050}, {510, 11060}, {515, 11070}, {520, 11080}, {525, 12000}, {530, 12010},
    {535, 12020}, {545, 12030}, {550, 12040}, {555, 12050}, {560, 12060}, {565, 12070},
    {570, 12080}, {575, 12090}, {580, 13000}, {590, 13010}, {595, 13020},
}};

}  // namespace

std::optional<int> max_cuda_of_driver(std::string_view driver_version) {
  int branch = 0;
  const auto* end = driver_version.data() + driver_version.size();
  const auto [rest, error] = std::from_chars(driver_version.data(), end, branch);
  if (error != std::errc{} || (rest != end && *rest != '.')) return std::nullopt;
  std::optional<int> cuda;
  for (const auto& [first, version] : kBranches)
    if (branch >= first) cuda = version;
  return cuda;
}

CudaFit cuda_fit(int driver, int runtime) {
  if (runtime <= driver) return CudaFit::kFits;
  return runtime / 1000 == driver / 1000 ? CudaFit::kFitsMinor : CudaFit::kTooNew;
}

std::string cuda_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace autodl
