// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What is known about drivers and CUDA versions (NVIDIA's release notes and compatibility pages).
// CUDA versions are integers as the driver reports them: major * 1000 + minor * 10 (12.4 = 12040).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace autodl {

// The highest CUDA version that a driver of this branch reports: "535.104.05" → 12020. Branches
// between two known ones count as the older. nullopt: not a version, or older than 440.
std::optional<int> max_cuda_of_driver(std::string_view driver_version);

enum class CudaFit {
  kFits,       // as new as the driver's own, or older
  kFitsMinor,  // same major, newer minor: runs, but PTX and the newest calls may not
  kTooNew,     // a newer major: error 35 at start
};

// Whether a program built for `runtime` starts on a driver whose highest is `driver`.
CudaFit cuda_fit(int driver, int runtime);

std::string cuda_text(int version);  // 12040 → "12.4"

}  // namespace autodl
