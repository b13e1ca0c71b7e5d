// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "http/message.hpp"

#include <algorithm>
#include <boost/beast/http/status.hpp>

namespace autodl::http {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return lower(x) == lower(y); });
}

bool has_token(std::string_view value, std::string_view token) {
  while (!value.empty()) {
    const auto comma = value.find(',');
    if (equal_ignoring_case(trimmed(value.substr(0, comma)), token)) return true;
    if (comma == std::string_view::npos) return false;
    value.remove_prefix(comma + 1);
  }
  return false;
}

void Headers::set(std::string_view name, std::string value) {
  for (auto& [key, old] : entries_)
    if (equal_ignoring_case(key, name)) {
      old = std::move(value);
      return;
    }
  entries_.emplace_back(std::string(name), std::move(value));
}

std::string_view Headers::get(std::string_view name) const {
  for (const auto& [key, value] : entries_)
    if (equal_ignoring_case(key, name)) return value;
  return {};
}

bool Headers::has(std::string_view name) const {
  return count(name) > 0;
}

std::size_t Headers::count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(),
                    [&](const Entry& entry) { return equal_ignoring_case(entry.first, name); }));
}

std::string_view reason_phrase(int status) {
  const auto text = boost::beast::http::obsolete_reason(
      boost::beast::http::int_to_status(static_cast<unsigned>(status)));
  return {text.data(), text.size()};
}

}  // namespace autodl::http
