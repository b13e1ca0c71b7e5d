// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// JsonFields: reads one JSON object from a stranger, field by field, and keeps the first fault.
// Every text has a maximum, every number a range; finish() also refuses fields nobody asked for.
//
//   JsonFields fields(payload, "stop");
//   InitStop stop{RunId(fields.text("run", 64)), fields.integer("grace_ms", 0, 600'000)};
//   ADL_TRY_STATUS(fields.finish());
#pragma once

#include <boost/json/object.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace autodl {

// Words of others (a tool's output, a driver's names) as a text that every reader here takes: valid
// UTF-8 (wrong bytes become U+FFFD) without NUL, cut between characters at bytes_max.
std::string readable_text(std::string_view text, std::size_t bytes_max);

class JsonFields {
 public:
  // what names the message in errors: "stop: field 'run' is missing".
  JsonFields(std::string_view text, std::string_view what);
  JsonFields(const boost::json::value& value, std::string_view what);

  bool has(std::string_view name) const;  // present and not null
  std::string text(std::string_view name, std::size_t bytes_max);
  std::optional<std::string> optional_text(std::string_view name, std::size_t bytes_max);
  std::int64_t integer(std::string_view name, std::int64_t min, std::int64_t max);
  std::int64_t integer_or(std::string_view name, std::int64_t fallback, std::int64_t min,
                          std::int64_t max);
  bool flag_or(std::string_view name, bool fallback);
  // Empty where the field is absent.
  std::vector<std::string> texts(std::string_view name, std::size_t count_max,
                                 std::size_t bytes_max);
  std::map<std::string, std::string> text_map(std::string_view name, std::size_t count_max,
                                              std::size_t bytes_max);
  std::vector<boost::json::value> items(std::string_view name, std::size_t count_max);

  bool failed() const { return error_.has_value(); }
  void fail(std::string message);
  void fail_with(const Error& error);
  Status finish();

 private:
  const boost::json::value* find(std::string_view name, bool required);

  std::string what_;
  boost::json::object object_;
  std::set<std::string, std::less<>> seen_;
  std::optional<Error> error_;
};

}  // namespace autodl
