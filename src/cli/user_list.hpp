// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// A list of users to make: CSV lines `name[,group[,credit]]`, quoted as RFC 4180 has it. Empty
// lines and a first line `name,group,credit` are skipped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace autodl::cli {

struct ListedUser {
  std::size_t line = 0;  // 1…
  std::string name;
  std::string group;  // empty: none
  std::int64_t credit_micro = 0;
};

// kInvalid "usage": the message has one line per fault, each with its line number.
Result<std::vector<ListedUser>> parse_user_list(std::string_view csv);

}  // namespace autodl::cli
