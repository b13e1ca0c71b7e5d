// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The one table of what a member of an API request must be like: used by the reader, and by
// whatever describes the API (OpenAPI). What needs knowledge of cards, images or names (and has an
// error code of its own) is checked by the core, not here.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace autodl::api {

struct FieldRule {
  std::string_view type;  // kName of the struct
  std::string_view field;
  bool required = false;
  std::int64_t min = std::numeric_limits<std::int64_t>::min();  // of numbers
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
  std::size_t bytes_max = 4'096;  // of a text (of each, in lists and maps)
  std::size_t count_max = 1'000;  // of a list or map
};

// The rule of a member; the default rule where the table has none.
const FieldRule& rule_of(std::string_view type, std::string_view field);

// The words that a text member can be, for the schemas; none: any text. The reader does not check
// them (the core does, with an error code of its own).
std::span<const std::string_view> values_of(std::string_view type, std::string_view field);

}  // namespace autodl::api
