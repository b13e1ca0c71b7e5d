// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "wire/frames.hpp"

#include <fmt/format.h>

namespace autodl {

std::string encode_frame(std::uint8_t type, std::string_view payload) {
  const auto length = static_cast<std::uint32_t>(payload.size());
  std::string bytes;
  bytes.reserve(kFrameHeaderBytes + payload.size());
  bytes += static_cast<char>(type);
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(length >> shift);
  bytes += payload;
  return bytes;
}

Result<std::optional<Frame>> FrameReader::next() {
  const std::string_view rest = std::string_view(buffer_).substr(consumed_);
  if (rest.size() < kFrameHeaderBytes) return std::optional<Frame>{};
  std::uint32_t length = 0;
  for (std::size_t i = 1; i < kFrameHeaderBytes; ++i)
    length = (length << 8) | static_cast<unsigned char>(rest[i]);
  if (length > payload_max_)
    return Error(
        ErrorKind::kInvalid, "frame_too_long",
        fmt::format("a frame of {} bytes is over the maximum of {}", length, payload_max_));
  if (rest.size() < kFrameHeaderBytes + length) {
    if (consumed_ > 0) {  // keep what is unread at the front, so that the buffer stays bounded
      buffer_.erase(0, consumed_);
      consumed_ = 0;
    }
    return std::optional<Frame>{};
  }
  Frame frame{static_cast<std::uint8_t>(rest[0]),
              std::string(rest.substr(kFrameHeaderBytes, length))};
  consumed_ += kFrameHeaderBytes + length;
  if (consumed_ == buffer_.size()) {
    buffer_.clear();
    consumed_ = 0;
  }
  return std::optional<Frame>(std::move(frame));
}

}  // namespace autodl
