// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets share. A broken property ends the program with its words, so that libFuzzer
// keeps the input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace autodl::fuzz {

inline void require(bool holds, const char* property) {
  if (holds) return;
  std::fprintf(stderr, "broken property: %s\n", property);
  std::abort();
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// What is accepted prints to what is accepted as the same value.
template <class Parse, class Print>
void round_trip(Parse parse, Print print, std::string_view text, const char* what) {
  const auto first = parse(text);
  if (!first.ok()) return;
  const auto second = parse(print(first.value()));
  if (!second.ok()) std::fprintf(stderr, "%s\n", second.error().message().c_str());
  require(second.ok(), what);
  require(second.value() == first.value(), what);
}

}  // namespace autodl::fuzz
