// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Percent codes, queries and addresses.
#include <algorithm>
#include <string>

#include "fuzz.hpp"
#include "http/url.hpp"

namespace {

using namespace autodl;

void check_percent(std::string_view text) {
  const bool has_nul = text.find('\0') != std::string_view::npos;
  const auto back = http::percent_decode(http::percent_encode(text));
  fuzz::require(has_nul ? !back : back == text, "an encoded text decodes to itself");
  if (const auto decoded = http::percent_decode(text); decoded && !has_nul)
    fuzz::require(decoded->find('\0') == std::string::npos && decoded->size() <= text.size(),
                  "no NUL comes out");
}

// Each pair, taken apart here, is what the query answers.
void check_query(std::string_view text) {
  const auto query = http::Query::parse(text);
  if (!query.ok()) return;
  while (!text.empty()) {
    const auto piece = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(text.size(), piece.size() + 1));
    if (piece.empty()) continue;
    const auto equals = std::min(piece.find('='), piece.size());
    const auto name = http::percent_decode(piece.substr(0, equals));
    const auto value = http::percent_decode(piece.substr(std::min(piece.size(), equals + 1)));
    fuzz::require(name && value, "an accepted query is well encoded");
    fuzz::require(query.value().get(*name) == value, "an accepted query tells each value");
  }
}

void check_url(std::string_view text) {
  const auto url = http::parse_url(text);
  if (!url.ok()) return;
  const auto& parts = url.value();
  fuzz::require(parts.scheme == "http" || parts.scheme == "https", "a known scheme");
  fuzz::require(!parts.host.empty() && parts.port != 0, "a host and a port");
  fuzz::require((parts.host + parts.path).find_first_of("?# \r\n") == std::string::npos,
                "nothing that could end a request line");
  fuzz::require(parts.path.empty() || (parts.path.front() == '/' && parts.path.back() != '/'),
                "a path without a slash at its end");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz::text_of(data, size);
  check_percent(text);
  check_query(text);
  check_url(text);
  return 0;
}
