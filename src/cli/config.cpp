// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/config.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <toml++/toml.h>
#include <cerrno>
#include <filesystem>
#include <sstream>

#include "base/unique_fd.hpp"

namespace autodl::cli {

std::string config_path(const Environment& environment) {
  if (const auto path = environment("AUTODL_CONFIG")) return *path;
  if (const auto base = environment("XDG_CONFIG_HOME"); base && !base->empty())
    return *base + "/autodl/config.toml";
  return environment("HOME").value_or("/root") + "/.config/autodl/config.toml";
}

namespace {

Status read_file(const std::string& path, Credentials& into, bool& has_endpoint) {
  if (!std::filesystem::exists(path)) return {};
  toml::table table;
  try {
    table = toml::parse_file(path);
  } catch (const toml::parse_error& problem) {
    return Error(ErrorKind::kInvalid, "bad_config",
                 fmt::format("{}, line {}: {}", path, problem.source().begin.line,
                             std::string(problem.description())),
                 "mend the file, or write it anew with: autodl login");
  }
  const auto text = [&](const char* key) {
    return table[key].value<std::string>().value_or(std::string());
  };
  if (const auto endpoint = text("endpoint"); !endpoint.empty()) {
    into.endpoint = endpoint;
    has_endpoint = true;
  }
  into.access_key = text("access_key");
  into.secret_key = text("secret_key");
  into.token = text("token");
  return {};
}

}  // namespace

Result<Credentials> load_credentials(const Credentials& flags, bool endpoint_given,
                                     const Environment& environment) {
  Credentials from_file;
  bool has_endpoint = false;
  ADL_TRY_STATUS(read_file(config_path(environment), from_file, has_endpoint));
  Credentials chosen = flags;
  if (!endpoint_given)
    chosen.endpoint = environment("AUTODL_ENDPOINT").value_or(from_file.endpoint);
  if (chosen.complete()) return chosen;
  chosen.access_key = environment("AUTODL_ACCESS_KEY").value_or("");
  chosen.secret_key = environment("AUTODL_SECRET_KEY").value_or("");
  chosen.token = environment("AUTODL_TOKEN").value_or("");
  if (chosen.complete()) return chosen;
  chosen.access_key = from_file.access_key;
  chosen.secret_key = from_file.secret_key;
  chosen.token = from_file.token;
  return chosen;
}

Status save_credentials(const Credentials& credentials, const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
  toml::table table;
  table.insert("endpoint", credentials.endpoint);
  if (!credentials.access_key.empty()) table.insert("access_key", credentials.access_key);
  if (!credentials.secret_key.empty()) table.insert("secret_key", credentials.secret_key);
  if (!credentials.token.empty()) table.insert("token", credentials.token);
  std::ostringstream text;
  text << table << "\n";
  const auto temporary = path + ".new";
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.valid())
    return errno_error(fmt::format("write '{}'", temporary), errno, ErrorKind::kInvalid);
  const auto bytes = text.str();
  if (::write(fd.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
      ::fsync(fd.get()) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0)
    return errno_error(fmt::format("write '{}'", path), errno, ErrorKind::kInvalid);
  return {};
}

}  // namespace autodl::cli
