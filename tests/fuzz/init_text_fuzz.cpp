// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What any process in an instance may write to init's socket, and a key's allow-list against an
// address: first line the client, then a pattern a line.
#include <algorithm>
#include <string>
#include <vector>

#include "fuzz.hpp"
#include "init/access_keys.hpp"
#include "init/api_server.hpp"

namespace {

using namespace autodl;

void check_head(std::string_view text) {
  const auto head = init::parse_request_head(text);
  if (!head.ok() || head.value().method.empty()) return;
  const auto& [method, path] = head.value();
  fuzz::require(path.starts_with('/') && text.starts_with(method + " " + path + " HTTP/1."),
                "method and path are what was sent");
  fuzz::require((method + path).find(' ') == std::string::npos, "method and path are words");
}

void check_patterns(std::string_view text) {
  const auto client = text.substr(0, text.find('\n'));
  std::vector<std::string> patterns;
  text.remove_prefix(std::min(text.size(), client.size() + 1));
  while (!text.empty()) {
    patterns.emplace_back(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(text.size(), patterns.back().size() + 1));
  }
  const bool allowed = init::client_allowed(patterns, client);
  auto turned = patterns;
  std::reverse(turned.begin(), turned.end());
  fuzz::require(init::client_allowed(turned, client) == allowed, "the order doesn't matter");
  patterns.emplace_back("!*");
  fuzz::require(!init::client_allowed(patterns, client), "a denial wins");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz::text_of(data, size);
  check_head(text);
  check_patterns(text);
  return 0;
}
