// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Card models as people, catalogues and drivers write them. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace autodl {

// The key under which two ways to write a model are the same: "RTX 3090", "rtx3090" and
// "NVIDIA GeForce RTX 3090" → "rtx3090"; "A100 40G", "NVIDIA A100-PCIE-40GB" → "a10040gb".
// Text without any letter or digit gives an empty key, which matches nothing.
std::string normalise_card_name(std::string_view name);

// The catalogue's name for what the driver says: "NVIDIA GeForce RTX 3090" → "RTX 3090",
// "NVIDIA A100-PCIE-40GB" → "A100 40GB", "NVIDIA H100 PCIe" with 81559 MiB → "H100 80GB" (cards
// that exist in several sizes always carry theirs).
std::string card_type_of(std::string_view driver_name, std::optional<std::int64_t> memory_bytes);

struct CardMatch {
  std::optional<std::string> type;       // the one that is meant
  std::vector<std::string> suggestions;  // where none is: the nearest, at most 3, best first
  bool operator==(const CardMatch&) const = default;
};

// Which of `types` is meant. "3090" means the RTX 3090 if there is just that one; "A100" is
// answered with suggestions, not guessed, since sizes have prices of their own.
CardMatch match_card_type(std::string_view wanted, const std::vector<std::string>& types);

}  // namespace autodl
