// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// SetupToken: the one-time word that makes the first operator. It lies in a 0600 file until used;
// `serve` prints it. Only the API's thread uses one.
#pragma once

#include <string>
#include <string_view>

#include "base/random.hpp"
#include "base/result.hpp"

namespace autodl {

class SetupToken {
 public:
  explicit SetupToken(std::string path) : path_(std::move(path)) {}
  // Reads the file, or makes one with a new token. Call it where there is no operator yet.
  Result<std::string> load_or_create(Random& random);
  // kDenied "bad_setup_token".
  Status check(std::string_view token) const;
  void used();  // removes the file

 private:
  std::string path_;
};

}  // namespace autodl
