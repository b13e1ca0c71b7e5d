// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "gpu/card_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace autodl {
namespace {

constexpr std::size_t kNameMax = 128;  // longer text is cut: no driver's name comes near

// Words that say who made a card or how it is mounted, not which one it is.
constexpr std::array<std::string_view, 14> kNoise = {
    "nvidia", "geforce", "tesla", "quadro", "pcie", "pci", "sxm", "sxm2", "sxm3", "sxm4", "sxm5",
    "hbm2",   "hbm2e",   "hbm3"};
// Models that exist with several memory sizes.
constexpr std::array<std::string_view, 6> kSized = {"a100", "a800", "h100", "h800", "v100", "3060"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string lower(std::string_view text) {
  std::string out(text);
  for (auto& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : name.substr(0, kNameMax)) {
    if (is_letter(c) || is_digit(c)) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.push_back(word);
  return words;
}

bool is_size(std::string_view word) {  // "40gb"
  return word.size() > 2 && word.ends_with("gb") &&
         std::all_of(word.begin(), word.end() - 2, is_digit);
}

// "40g", "40gib" → "40gb"; other words stay.
std::string unify_size(std::string word) {
  const auto digits = static_cast<std::size_t>(
      std::find_if_not(word.begin(), word.end(), is_digit) - word.begin());
  const auto rest = std::string_view(word).substr(digits);
  if (digits > 0 && (rest == "g" || rest == "gib")) return word.substr(0, digits) + "gb";
  return word;
}

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const auto replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j + 1] + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string normalise_card_name(std::string_view name) {
  std::string key;
  bool after_digits_alone = false;
  for (const auto& original : words_of(name)) {
    auto word = lower(original);
    if (std::find(kNoise.begin(), kNoise.end(), word) != kNoise.end()) continue;
    // "A100 40 GB": the unit stands alone.
    if (after_digits_alone && (word == "g" || word == "gib")) word = "gb";
    after_digits_alone = std::all_of(word.begin(), word.end(), is_digit);
    key += unify_size(std::move(word));
  }
  for (const std::string_view prefix : {"nvidia", "geforce", "tesla"})  // written without spaces
    if (key.starts_with(prefix)) key.erase(0, prefix.size());
  return key;
}

std::string card_type_of(std::string_view driver_name, std::optional<std::int64_t> memory_bytes) {
  std::string type;
  bool sized = false;
  bool needs_size = false;
  for (const auto& word : words_of(driver_name)) {
    const auto small = lower(word);
    if (std::find(kNoise.begin(), kNoise.end(), small) != kNoise.end()) continue;
    sized = sized || is_size(small);
    needs_size = needs_size || std::find(kSized.begin(), kSized.end(), small) != kSized.end();
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

CardMatch match_card_type(std::string_view wanted, const std::vector<std::string>& types) {
  const auto key = normalise_card_name(wanted);
  CardMatch match;
  if (key.empty()) return match;
  std::vector<std::string> without_series;
  std::vector<std::pair<std::size_t, std::size_t>> near;  // steps, index: ties keep the order
  for (std::size_t i = 0; i < types.size(); ++i) {
    const auto& type = types[i];
    const auto other = normalise_card_name(type);
    if (other == key) return {.type = type, .suggestions = {}};
    if (other == "rtx" + key || other == "gtx" + key) without_series.push_back(type);
    const bool part = key.size() >= 2 && (other.starts_with(key) || other.find(key) != other.npos);
    const auto steps = part ? 1 : distance(key, other);
    if (part || steps <= std::max<std::size_t>(2, key.size() / 4)) near.emplace_back(steps, i);
  }
  if (without_series.size() == 1) return {.type = without_series.front(), .suggestions = {}};
  std::sort(near.begin(), near.end());
  for (std::size_t i = 0; i < near.size() && i < 3; ++i)
    match.suggestions.push_back(types[near[i].second]);
  return match;
}

}  // namespace autodl
