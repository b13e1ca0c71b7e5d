// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Values in a query, checked: numbers within bounds, flags, times.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "http/url.hpp"

namespace autodl {

// kInvalid "bad_parameter" names the parameter and the bounds.
Result<std::int64_t> query_number(const http::Query& query, std::string_view name,
                                  std::int64_t fallback, std::int64_t min, std::int64_t max);
Result<bool> query_flag(const http::Query& query, std::string_view name);  // 0 or 1; absent: 0
Result<std::optional<UtcTime>> query_time(const http::Query& query, std::string_view name);
// The whole text as a number.
std::optional<std::int64_t> parse_number(std::string_view text);

}  // namespace autodl
