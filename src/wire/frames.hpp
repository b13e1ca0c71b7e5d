// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Frames: u8 type, u32 big-endian length, payload. Used into instances, to file workers and on
// the link. FrameReader takes bytes as they come and hands out whole frames; it never holds more
// than one frame's maximum.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace autodl {

inline constexpr std::size_t kFrameHeaderBytes = 5;
inline constexpr std::size_t kFramePayloadMax = 1 << 20;
inline constexpr std::size_t kLinkFramePayloadMax = 16 << 20;

struct Frame {
  std::uint8_t type = 0;
  std::string payload;
};

std::string encode_frame(std::uint8_t type, std::string_view payload);

class FrameReader {
 public:
  explicit FrameReader(std::size_t payload_max = kFramePayloadMax) : payload_max_(payload_max) {}

  void put(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole frame, nothing yet, or kInvalid where a length is over the maximum: the
  // connection is then unusable.
  Result<std::optional<Frame>> next();

 private:
  std::size_t payload_max_;
  std::string buffer_;
  std::size_t consumed_ = 0;
};

}  // namespace autodl
