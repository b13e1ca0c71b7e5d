// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What people see: tables, amounts, times, errors. Colour and progress only on terminals, and no
// colour where NO_COLOR is set.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/result.hpp"

namespace autodl::cli {

enum class Format { kTable, kJson };

// Rows of text under headings, aligned also for wide (CJK) characters; control characters of
// foreign text are shown as '?'.
std::string table(const std::vector<std::string>& headings,
                  const std::vector<std::vector<std::string>>& rows);

std::string money(std::int64_t micro, std::string_view currency);  // "¥0.626294", "¥1.58"
// "12.5" -> 12,500,000, exactly; kInvalid "usage" for more than six decimals and for no number.
Result<std::int64_t> parse_amount(std::string_view text);
std::string duration(std::int64_t seconds);  // "23m47s"
std::string bytes(std::int64_t count);       // "50 GiB"
std::string clean(std::string_view text);

void print_json(const boost::json::value& value);
// The error with its remedy, on stderr.
void print_error(const Error& error);
int exit_code_of(const Error& error);

// A line that is rewritten in place on a terminal and printed never elsewhere.
class Progress {
 public:
  Progress();
  ~Progress();
  void show(std::string_view text);
  void clear();

 private:
  bool on_terminal_;
  bool shown_ = false;
};

}  // namespace autodl::cli
