// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// However the bytes come in pieces, the same frames come out, and they encode to those bytes.
// The first byte chooses the pieces' lengths.
#include "wire/frames.hpp"

#include <algorithm>
#include <string>

#include "fuzz.hpp"

namespace {

using namespace autodl;

constexpr std::size_t kPayloadMax = 300;

struct Outcome {
  std::string encoded;  // the frames, printed again
  std::size_t frames = 0;
  bool failed = false;
  bool operator==(const Outcome&) const = default;
};

// longest: of a piece; 0: all at once.
Outcome read_in_pieces(std::string_view bytes, unsigned seed, std::size_t longest) {
  FrameReader reader(kPayloadMax);
  Outcome outcome;
  while (!bytes.empty()) {
    seed = seed * 1'103'515'245 + 12'345;
    const std::size_t wanted = longest == 0 ? bytes.size() : 1 + (seed >> 16) % longest;
    const std::size_t length = std::min(wanted, bytes.size());
    reader.put(bytes.substr(0, length));
    bytes.remove_prefix(length);
    for (;;) {
      const auto next = reader.next();
      if (!next.ok()) {
        outcome.failed = true;
        return outcome;
      }
      if (!next.value()) break;
      fuzz::require(next.value()->payload.size() <= kPayloadMax, "no frame over the maximum");
      outcome.encoded += encode_frame(next.value()->type, next.value()->payload);
      ++outcome.frames;
    }
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = fuzz::text_of(data + 1, size - 1);
  const auto whole = read_in_pieces(bytes, 0, 0);
  const auto bits = read_in_pieces(bytes, 0, 1);
  const auto pieces = read_in_pieces(bytes, data[0], 9);
  fuzz::require(whole == bits && whole == pieces, "any pieces give the same frames");
  fuzz::require(bytes.starts_with(whole.encoded), "the frames are the bytes that came");
  return 0;
}
