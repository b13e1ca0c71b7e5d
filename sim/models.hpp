// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The card models that can be simulated, and the list syntax of `--simulate-gpus`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "sim/state_format.h"

namespace autodl::sim {

inline constexpr std::string_view kDefaultCards = "RTX 3090:2,RTX 4090:2,A100 40GB:1";

// "RTX 3090:2,A100 40GB" → cards in that order with made-up but stable UUIDs, bus ids and minors,
// the same for the same list on every start. A model may be written as people write it ("rtx3090").
// Errors: bad_card_list (names the entry; lists the known models), too_many_cards.
Result<std::vector<adlsim_card>> parse_card_list(std::string_view list);

// Catalogue names, for messages: "RTX 3090, RTX 4090, A100 40GB, …".
std::string known_models();

}  // namespace autodl::sim
