// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Random: the only source of randomness, injected. SystemRandom is for keys; SeededRandom replays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>

namespace autodl {

class Random {
 public:
  virtual ~Random() = default;
  virtual void fill(std::span<unsigned char> bytes) = 0;

  std::uint64_t next_u64();
  // Uniform below bound (bound > 0).
  std::uint64_t below(std::uint64_t bound);
  // count random bytes as lower-case hex (2 characters each).
  std::string hex(std::size_t count);
};

class SystemRandom final : public Random {
 public:
  void fill(std::span<unsigned char> bytes) override;
};

class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : engine_(seed) {}
  void fill(std::span<unsigned char> bytes) override;

 private:
  std::mt19937_64 engine_;
};

}  // namespace autodl
