// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// SHA-256 as lower-case hex.
#pragma once

#include <sodium.h>

#include <string>
#include <string_view>

namespace autodl::fileworker {

class Sha256 {
 public:
  Sha256() { crypto_hash_sha256_init(&state_); }
  void add(std::string_view bytes) {
    crypto_hash_sha256_update(&state_, reinterpret_cast<const unsigned char*>(bytes.data()),
                              bytes.size());
  }
  std::string hex() {
    unsigned char digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_final(&state_, digest);
    char text[2 * sizeof digest + 1];
    sodium_bin2hex(text, sizeof text, digest, sizeof digest);
    return text;
  }
  static std::string of(std::string_view bytes) {
    Sha256 hash;
    hash.add(bytes);
    return hash.hex();
  }

 private:
  crypto_hash_sha256_state state_{};
};

}  // namespace autodl::fileworker
