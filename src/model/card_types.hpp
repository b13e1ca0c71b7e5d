// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Card types as people write them: "RTX 3090", "rtx3090", "NVIDIA GeForce RTX 3090",
// "A100 40GB", "NVIDIA A100-PCIE-40GB". Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace autodl {

// What is compared: lower case, letters and digits only, without vendor and bus words.
std::string card_type_key(std::string_view name);

// The known names that `asked` means: the equal one, or all it is a prefix of ("A100" means both
// "A100 40GB" and "A100 80GB"). Empty: none.
std::vector<std::string> match_card_types(std::string_view asked,
                                          const std::vector<std::string>& known);

// Up to three known names nearest to `asked` by edit distance on `key(name)`; for error messages.
std::vector<std::string> near_names(std::string_view asked, const std::vector<std::string>& known);

std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace autodl
