// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "init/access_keys.hpp"

#include <arpa/inet.h>

#include <charconv>

namespace autodl::init {
namespace {

// '*' and '?' over the whole text; linear, whatever the pattern.
bool glob_matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t]) && pattern[p] != '*') {
      ++p;
      ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// 4 or 16 bytes; empty where it is no address.
std::string address_bytes(std::string_view text) {
  unsigned char raw[16];
  const std::string copy(text);
  if (inet_pton(AF_INET, copy.c_str(), raw) == 1) return {reinterpret_cast<char*>(raw), 4};
  if (inet_pton(AF_INET6, copy.c_str(), raw) == 1) return {reinterpret_cast<char*>(raw), 16};
  return {};
}

bool range_matches(std::string_view pattern, std::string_view client) {
  const auto slash = pattern.find('/');
  const std::string network = address_bytes(pattern.substr(0, slash));
  const std::string address = address_bytes(client);
  const std::string_view digits = pattern.substr(slash + 1);
  unsigned bits = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
  if (error != std::errc{} || end != digits.data() + digits.size() || network.empty() ||
      network.size() != address.size() || bits > network.size() * 8)
    return false;
  for (std::size_t i = 0; i < network.size() && bits > 0; ++i) {
    const unsigned here = bits < 8 ? bits : 8;
    const unsigned mask = (0xff00U >> here) & 0xffU;
    if (((static_cast<unsigned char>(network[i]) ^ static_cast<unsigned char>(address[i])) &
         mask) != 0)
      return false;
    bits -= here;
  }
  return true;
}

bool matches(std::string_view pattern, std::string_view client) {
  if (pattern.find('/') != std::string_view::npos) return range_matches(pattern, client);
  if (glob_matches(pattern, client)) return true;
  const std::string exact = address_bytes(pattern);  // other spellings of one IPv6 address
  return !exact.empty() && exact == address_bytes(client);
}

}  // namespace

bool client_allowed(const std::vector<std::string>& patterns, std::string_view client) {
  bool allowed = patterns.empty();
  for (std::string_view pattern : patterns) {
    const bool denies = pattern.starts_with('!');
    if (denies) pattern.remove_prefix(1);
    if (!matches(pattern, client)) continue;
    if (denies) return false;
    allowed = true;
  }
  return allowed;
}

std::string authorized_keys_for(const std::vector<AccessKey>& keys, std::string_view client) {
  std::string text;
  for (const AccessKey& key : keys) {
    if (client_allowed(key.from, client)) text += key.public_key + "\n";
  }
  return text;
}

}  // namespace autodl::init
