// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What a user asks for, and the checks that need nothing but the request itself. Codes are those of
// docs/api/contract.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/states.hpp"

namespace autodl {

inline constexpr std::int64_t kDiskBytesMin = std::int64_t{256} << 20;  // 256 MiB
inline constexpr std::int64_t kDiskBytesMax = std::int64_t{16} << 40;   // 16 TiB
inline constexpr std::int64_t kMaxRuntimeMax = std::int64_t{366} * 86'400;

struct CreateRequest {
  std::optional<std::string> name;  // none: 001, 002, …
  std::string image;
  std::optional<std::string> command;
  std::optional<std::string> gpu_type;
  std::int64_t gpu_count = 1;
  std::int64_t disk_bytes = std::int64_t{50} << 30;
  std::optional<std::int64_t> max_runtime_s;
  std::map<std::string, std::string> env;
  std::string workdir = "/root";
  std::string restart = "never";
  std::vector<std::string> ssh_keys;
  bool allow_cpu_image = false;
};

// Everything that can be said without looking at accounts, cards or images: bad_name, bad_env,
// bad_workdir, bad_disk_size, bad_gpu_count, gpu_type_required, bad_max_runtime, bad_restart,
// bad_ssh_key, bad_command, unknown_image (empty or malformed).
Status validate(const CreateRequest& request);

Status validate_name(std::string_view name);          // 1–64 characters of valid UTF-8
Status validate_ssh_key(std::string_view key);        // one OpenSSH public key line, no options
Status validate_account_name(std::string_view name);  // as validate_name
Status validate_image(std::string_view image);        // the form alone; unknown_image

// The number of characters of valid UTF-8 (no surrogates, no overlong forms); none: not UTF-8.
std::optional<std::size_t> utf8_length(std::string_view text);
// Whether it holds a control character (C0, DEL, C1, line separators, bidi controls).
bool has_control_character(std::string_view utf8);

}  // namespace autodl
