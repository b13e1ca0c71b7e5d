// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The one line of JSON that the NVML child answers with. The parent reads it as hostile input: a
// driver's library that has run wild may have written it.
//
// {"driver":"550.163.01","cuda":12040,"simulated":false,"cards":[{"index":0,"uuid":…}]}
// {"error":"Driver/library version mismatch"}
#pragma once

#include <string>
#include <string_view>

#include "gpu/inventory.hpp"

namespace autodl {

inline constexpr std::size_t kNvmlAnswerMax = 1 << 20;  // bytes
inline constexpr std::size_t kNvmlCardsMax = 256;
inline constexpr std::size_t kNvmlProcessesMax = 1024;  // a card

std::string print_inventory(const Inventory& inventory);
std::string print_nvml_error(std::string_view message);

// Errors: nvml_failed (the child's own word), nvml_crashed (no valid answer).
Result<Inventory> parse_inventory(std::string_view line);

// A lost card may no longer tell who it is. Cards that were known and are missing now are put
// back under their UUID with the reason, and what is told without a UUID is dropped for them.
Inventory keep_lost_cards(const std::vector<CardInfo>& known, Inventory fresh);

}  // namespace autodl
