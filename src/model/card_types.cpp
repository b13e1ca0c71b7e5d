// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "model/card_types.hpp"

#include <algorithm>
#include <utility>

namespace autodl {
namespace {

bool is_dropped(std::string_view word) {
  for (const std::string_view drop : {"nvidia", "geforce", "tesla", "quadro", "pcie", "pci", "sxm",
                                      "sxm2", "sxm3", "sxm4", "sxm5", "hbm2", "hbm2e", "hbm3"}) {
    if (word == drop) return true;
  }
  return false;
}

}  // namespace

std::string card_type_key(std::string_view name) {
  std::string key;
  std::string word;
  const auto end_word = [&] {
    if (!is_dropped(word)) key += word;
    word.clear();
  };
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') {
      word += static_cast<char>(c - 'A' + 'a');
    } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
               static_cast<unsigned char>(c) >= 0x80) {
      word += c;
    } else {
      end_word();
    }
  }
  end_word();
  return key;
}

std::vector<std::string> match_card_types(std::string_view asked,
                                          const std::vector<std::string>& known) {
  const std::string key = card_type_key(asked);
  std::vector<std::string> longer;
  if (key.empty()) return longer;
  for (const auto& name : known) {
    const std::string other = card_type_key(name);
    if (other == key) return {name};
    // "a100" means "a100 40gb": only the memory size, a name's last word, may be left out.
    const std::size_t space = name.rfind(' ');
    if (space != std::string::npos && other.ends_with("gb") &&
        card_type_key(std::string_view(name).substr(0, space)) == key) {
      longer.push_back(name);
    }
  }
  return longer;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row[b.size()];
}

std::vector<std::string> near_names(std::string_view asked, const std::vector<std::string>& known) {
  const std::string key = card_type_key(asked.substr(0, 256));
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const auto& name : known) {
    const std::string other = card_type_key(name);
    const std::size_t distance = edit_distance(key, other);
    const bool part = !key.empty() && (other.find(key) != std::string::npos ||
                                       (!other.empty() && key.find(other) != std::string::npos));
    if (part || distance <= std::max<std::size_t>(2, std::max(key.size(), other.size()) / 2)) {
      ranked.emplace_back(part ? 0 : distance, name);
    }
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> out;
  for (auto& [distance, name] : ranked) {
    if (out.size() < 3) out.push_back(std::move(name));
  }
  return out;
}

}  // namespace autodl
