// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What an HTTP message carries, for server and client.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace autodl::http {

// Names compare without regard to case; order is kept.
class Headers {
 public:
  using Entry = std::pair<std::string, std::string>;

  Headers() = default;
  Headers(std::initializer_list<Entry> entries) : entries_(entries) {}

  void add(std::string name, std::string value) {
    entries_.emplace_back(std::move(name), std::move(value));
  }
  void set(std::string_view name, std::string value);
  // The first value; empty where there is none (has() tells the difference).
  std::string_view get(std::string_view name) const;
  bool has(std::string_view name) const;
  std::size_t count(std::string_view name) const;
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

struct Response {
  int status = 200;
  Headers headers;  // Content-Length, Date, Connection and X-Request-Id are the server's
  std::string body;
};

bool equal_ignoring_case(std::string_view a, std::string_view b);
// Whether a comma-separated header value has this word ("Upgrade" in "keep-alive, Upgrade").
bool has_token(std::string_view value, std::string_view token);
std::string_view reason_phrase(int status);

}  // namespace autodl::http
