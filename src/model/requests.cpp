// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "model/requests.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.hpp"

namespace autodl {
namespace {

constexpr std::size_t kNameCharactersMax = 64;
constexpr std::size_t kImageBytesMax = 512;
constexpr std::size_t kCommandBytesMax = 65'536;
constexpr std::size_t kEnvEntriesMax = 256;
constexpr std::size_t kEnvBytesMax = 131'072;
constexpr std::size_t kSshKeysMax = 32;
constexpr std::int64_t kGpuCountMax = 64;

Error invalid(const char* code, std::string message, std::string remedy = {}) {
  return Error(ErrorKind::kInvalid, code, std::move(message), std::move(remedy));
}

// Decodes one character at `at` and moves on; none: not UTF-8.
std::optional<char32_t> next_character(std::string_view text, std::size_t& at) {
  const int length = utf8_sequence(text.substr(at));
  if (length <= 0) return std::nullopt;
  const auto byte = [&](int i) {
    return static_cast<unsigned char>(text[at + static_cast<std::size_t>(i)]);
  };
  char32_t value = length == 1 ? byte(0) : byte(0) & (0xFFU >> (length + 1));
  for (int i = 1; i < length; ++i) value = (value << 6) | (byte(i) & 0x3FU);
  at += static_cast<std::size_t>(length);
  return value;
}

bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || c == 0x2028 || c == 0x2029 ||
         (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

bool is_space(std::string_view text, bool at_end) {
  const auto blank = [&](std::string_view mark) {
    return at_end ? text.ends_with(mark) : text.starts_with(mark);
  };
  return blank(" ") || blank("\u00A0") || blank("\u3000");
}

Status validate_label(std::string_view name, const char* what) {
  const auto length = utf8_length(name);
  if (!length) return invalid("bad_name", fmt::format("{} is not valid UTF-8", what));
  if (*length == 0 || *length > kNameCharactersMax) {
    return invalid("bad_name", fmt::format("{} has {} characters; 1 to {} are allowed", what,
                                           *length, kNameCharactersMax));
  }
  if (has_control_character(name)) {
    return invalid("bad_name",
                   fmt::format("{} holds a control character, such as a newline or a tab", what));
  }
  if (name.find('/') != std::string_view::npos) {
    return invalid("bad_name", fmt::format("{} holds a '/'", what));
  }
  if (is_space(name, false) || is_space(name, true)) {
    return invalid("bad_name", fmt::format("{} begins or ends with a space", what));
  }
  if (name == "." || name == "..") {
    return invalid("bad_name", fmt::format("{} is '{}'", what, name));
  }
  return {};
}

Status validate_env(const std::map<std::string, std::string>& env) {
  if (env.size() > kEnvEntriesMax) {
    return invalid("bad_env",
                   fmt::format("env has {} variables; at most {}", env.size(), kEnvEntriesMax));
  }
  std::size_t bytes = 0;
  for (const auto& [name, value] : env) {
    const auto plain = [](char c) {
      return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    };
    const bool begins_well = !name.empty() && !(name[0] >= '0' && name[0] <= '9');
    if (!begins_well || name.size() > 256 || !std::all_of(name.begin(), name.end(), plain)) {
      return invalid("bad_env", "env has a name that is not [A-Za-z_][A-Za-z0-9_]*",
                     "rename the variable");
    }
    if (value.find('\0') != std::string::npos || !utf8_length(value)) {
      return invalid("bad_env",
                     fmt::format("env variable {} holds a NUL or is not valid UTF-8", name));
    }
    bytes += name.size() + value.size() + 2;
  }
  if (bytes > kEnvBytesMax) {
    return invalid("bad_env", fmt::format("env has {} bytes; at most {}", bytes, kEnvBytesMax));
  }
  return {};
}

Status validate_workdir(std::string_view path) {
  const auto length = utf8_length(path);
  if (!length || path.empty() || path.size() > 1'024 || path[0] != '/') {
    return invalid("bad_workdir", "workdir is not an absolute path of at most 1024 bytes",
                   "give a path such as /root");
  }
  if (has_control_character(path)) {
    return invalid("bad_workdir", "workdir holds a control character");
  }
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (path.substr(at, end - at) == "..") return invalid("bad_workdir", "workdir holds '..'");
    at = end + 1;
  }
  return {};
}

Status validate_sizes(const CreateRequest& request) {
  if (request.disk_bytes < kDiskBytesMin || request.disk_bytes > kDiskBytesMax) {
    return invalid("bad_disk_size",
                   fmt::format("disk_bytes is {}; {} (256 MiB) to {} (16 TiB) are allowed",
                               request.disk_bytes, kDiskBytesMin, kDiskBytesMax));
  }
  if (request.gpu_count < 0 || request.gpu_count > kGpuCountMax) {
    return invalid("bad_gpu_count", fmt::format("gpu_count is {}; 0 to {} are allowed",
                                                request.gpu_count, kGpuCountMax));
  }
  if (request.gpu_count > 0 && (!request.gpu_type || request.gpu_type->empty())) {
    return invalid("gpu_type_required", "gpu_type is missing, and gpu_count is not 0",
                   "name a card type (see `autodl gpus`), or set gpu_count to 0");
  }
  if (request.max_runtime_s &&
      (*request.max_runtime_s < 1 || *request.max_runtime_s > kMaxRuntimeMax)) {
    return invalid("bad_max_runtime", fmt::format("max_runtime_s is {}; 1 to {} are allowed",
                                                  *request.max_runtime_s, kMaxRuntimeMax));
  }
  return {};
}

}  // namespace

std::optional<std::size_t> utf8_length(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) {
    if (!next_character(text, at)) return std::nullopt;
  }
  return count;
}

bool has_control_character(std::string_view utf8) {
  for (std::size_t at = 0; at < utf8.size();) {
    const auto character = next_character(utf8, at);
    if (!character || is_control(*character)) return true;
  }
  return false;
}

Status validate_image(std::string_view image) {
  const auto good = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view("._-/:@+").find(c) != std::string_view::npos;
  };
  if (image.empty() || image.size() > kImageBytesMax || image[0] == '-' || image[0] == '/' ||
      !std::all_of(image.begin(), image.end(), good) ||
      image.find("..") != std::string_view::npos) {
    return invalid("unknown_image", "image is empty or not the name of an image",
                   "see `autodl images`");
  }
  return {};
}

Status validate_name(std::string_view name) {
  return validate_label(name, "name");
}
Status validate_account_name(std::string_view name) {
  return validate_label(name, "the account's name");
}

Status validate_ssh_key(std::string_view key) {
  const auto bad = [](const char* why) {
    return invalid("bad_ssh_key", fmt::format("ssh key {}", why),
                   "give one line of a .pub file: ssh-ed25519 AAAA… comment");
  };
  if (key.size() > 16'384) return bad("is longer than 16384 bytes");
  if (!utf8_length(key) || has_control_character(key)) return bad("is not one line of text");
  const std::size_t first = key.find(' ');
  if (first == std::string_view::npos) return bad("has no key after its type");
  const std::string_view type = key.substr(0, first);
  bool known = false;
  for (const std::string_view name :
       {"ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384",
        "ecdsa-sha2-nistp521", "sk-ssh-ed25519@openssh.com",
        "sk-ecdsa-sha2-nistp256@openssh.com"}) {
    known = known || type == name;
  }
  if (!known) return bad("does not begin with a known type (options are not allowed)");
  const std::string_view rest = key.substr(first + 1);
  const std::string_view blob = rest.substr(0, rest.find(' '));
  const auto base64 = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/' || c == '=';
  };
  if (blob.size() < 64 || blob.size() % 4 != 0 || !blob.starts_with("AAAA") ||
      !std::all_of(blob.begin(), blob.end(), base64)) {
    return bad("is cut off or not base64");
  }
  return {};
}

Status validate(const CreateRequest& request) {
  if (request.name) ADL_TRY_STATUS(validate_name(*request.name));
  ADL_TRY_STATUS(validate_image(request.image));
  ADL_TRY_STATUS(validate_sizes(request));
  if (request.command) {
    const auto& command = *request.command;
    if (command.empty() || command.size() > kCommandBytesMax || !utf8_length(command) ||
        command.find('\0') != std::string::npos) {
      return invalid("bad_command",
                     "command is empty, longer than 65536 bytes, not UTF-8 or holds a NUL",
                     "leave it out for an instance without a command");
    }
  }
  ADL_TRY_STATUS(validate_env(request.env));
  ADL_TRY_STATUS(validate_workdir(request.workdir));
  if (!parse_restart_policy(request.restart)) {
    return invalid("bad_restart", "restart is neither 'never' nor 'on-loss'");
  }
  if (request.ssh_keys.size() > kSshKeysMax) {
    return invalid("bad_ssh_key", fmt::format("more than {} ssh keys", kSshKeysMax));
  }
  for (const auto& key : request.ssh_keys) ADL_TRY_STATUS(validate_ssh_key(key));
  return {};
}

}  // namespace autodl
