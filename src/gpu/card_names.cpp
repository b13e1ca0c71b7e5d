// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "gpu/card_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "model/card_types.hpp"

namespace autodl {
namespace {

constexpr std::size_t kNameMax = 128;  // longer text is cut: no driver's name comes near

// Models that exist with several memory sizes, by key.
constexpr std::array<std::string_view, 6> kSized = {"a100", "a800", "h100", "h800", "v100", "3060"};

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : name.substr(0, kNameMax)) {
    if (is_word(c)) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.push_back(word);
  return words;
}

bool is_size(std::string_view key) {  // "40gb"
  return key.size() > 2 && key.ends_with("gb") &&
         key.substr(0, key.size() - 2).find_first_not_of("0123456789") == key.npos;
}

}  // namespace

std::string card_type_of(std::string_view driver_name, std::optional<std::int64_t> memory_bytes) {
  std::string type;
  bool sized = false;
  bool needs_size = false;
  for (const auto& word : words_of(driver_name)) {
    const auto key = card_type_key(word);
    if (key.empty()) continue;  // the vendor, or how the card is mounted: not which one it is
    sized = sized || is_size(key);
    needs_size = needs_size || std::find(kSized.begin(), kSized.end(), key) != kSized.end();
    if (!type.empty()) type += ' ';
    type += word;
  }
  if (needs_size && !sized && memory_bytes.has_value()) {
    // Drivers count a little less or more than the size on the box: the nearest multiple of 4 GB,
    // of 8 from 32 on.
    const auto gib = (*memory_bytes + (1LL << 29)) >> 30;
    const auto step = gib >= 32 ? 8 : 4;
    type += fmt::format(" {}GB", (gib + step / 2) / step * step);
  }
  return type;
}

}  // namespace autodl
