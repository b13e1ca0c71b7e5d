// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "control/api/query_values.hpp"

#include <fmt/format.h>

#include <charconv>

namespace autodl {
namespace {

Error bad_parameter(std::string message) {
  return Error(ErrorKind::kInvalid, "bad_parameter", std::move(message));
}

}  // namespace

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

Result<std::int64_t> query_number(const http::Query& query, std::string_view name,
                                  std::int64_t fallback, std::int64_t min, std::int64_t max) {
  const auto text = query.get(name);
  if (!text) return fallback;
  const auto number = parse_number(*text);
  if (number && *number >= min && *number <= max) return *number;
  return bad_parameter(fmt::format("'{}' must be a number from {} to {}", name, min, max));
}

Result<bool> query_flag(const http::Query& query, std::string_view name) {
  const auto text = query.get(name);
  if (!text || *text == "0") return false;
  if (*text == "1") return true;
  return bad_parameter(fmt::format("'{}' must be 0 or 1", name));
}

Result<std::optional<UtcTime>> query_time(const http::Query& query, std::string_view name) {
  const auto text = query.get(name);
  if (!text || text->empty()) return std::optional<UtcTime>{};
  const auto time = parse_rfc3339(*text);
  if (time) return std::optional<UtcTime>(*time);
  return bad_parameter(
      fmt::format("'{}' must be a time in UTC such as 2026-12-01T15:58:12Z", name));
}

}  // namespace autodl
