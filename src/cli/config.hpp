// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Where the CLI's endpoint and keys come from: flags, then AUTODL_ENDPOINT, AUTODL_ACCESS_KEY,
// AUTODL_SECRET_KEY and AUTODL_TOKEN, then ~/.config/autodl/config.toml (the SDK reads the same).
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.hpp"

namespace autodl::cli {

struct Credentials {
  std::string endpoint = "http://127.0.0.1:8480";
  std::string access_key, secret_key;  // both, or
  std::string token;                   // this
  bool complete() const { return !token.empty() || (!access_key.empty() && !secret_key.empty()); }
};

using Environment = std::function<std::optional<std::string>(const char*)>;

std::string config_path(const Environment& environment);
// flags holds what the command line gave; its empty members are filled from environment and file.
// kInvalid "bad_config" names the file and line.
Result<Credentials> load_credentials(const Credentials& flags, bool endpoint_given,
                                     const Environment& environment);
// Written to a temporary name with mode 0600 and renamed.
Status save_credentials(const Credentials& credentials, const std::string& path);

}  // namespace autodl::cli
