// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// SecretBox: seals secrets at rest (XChaCha20-Poly1305) under a master key that lies in a 0600
// file outside the database; also the hash under which tokens are kept.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/random.hpp"
#include "base/result.hpp"

namespace autodl {

class SecretBox {
 public:
  explicit SecretBox(std::array<unsigned char, 32> key) : key_(key) {}
  // Reads the key file, or makes one (0600, synced). Refuses one that others may read.
  static Result<SecretBox> load_or_create(const std::string& path, Random& random);

  // Hex of nonce and sealed text; context (the key id) is authenticated with it.
  std::string seal(std::string_view secret, std::string_view context, Random& random) const;
  Result<std::string> open(std::string_view sealed_hex, std::string_view context) const;

 private:
  std::array<unsigned char, 32> key_;
};

std::string hash_of_token(std::string_view text);

}  // namespace autodl
