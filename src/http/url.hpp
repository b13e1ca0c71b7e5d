// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The parts of a request target, percent-coding, queries.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace autodl::http {

// Everything but letters, digits and "-._~" becomes %XX.
std::string percent_encode(std::string_view text);
// Nothing where a % is not followed by two hex digits, or a NUL comes out. '+' stays a plus.
std::optional<std::string> percent_decode(std::string_view text);

// A query's pairs, decoded, in order. Answers kInvalid "bad_query" where it can't be decoded and
// where a name comes twice (two readers could take different ones).
class Query {
 public:
  static Result<Query> parse(std::string_view text);
  std::optional<std::string> get(std::string_view name) const;
  // The first name that is not in the list, where there is one: kInvalid "unknown_parameter".
  Status only(std::initializer_list<std::string_view> known) const;

 private:
  std::vector<std::pair<std::string, std::string>> pairs_;
};

struct Url {
  std::string scheme;  // "http"
  std::string host;    // without brackets
  std::uint16_t port = 0;
  std::string path;  // "" or "/prefix", without a slash at the end
};

// "http://127.0.0.1:8480". kInvalid "bad_url".
Result<Url> parse_url(std::string_view text);

}  // namespace autodl::http
