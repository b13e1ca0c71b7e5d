// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "control/api/setup_token.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/unique_fd.hpp"
#include "wire/api_signature.hpp"

namespace autodl {
namespace {

std::string read_token(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  char text[256];
  const auto got = fd.valid() ? ::read(fd.get(), text, sizeof text) : -1;
  if (got <= 0) return {};
  std::string token(text, static_cast<std::size_t>(got));
  while (!token.empty() && (token.back() == '\n' || token.back() == ' ')) token.pop_back();
  return token;
}

}  // namespace

Result<std::string> SetupToken::load_or_create(Random& random) {
  auto token = read_token(path_);
  if (!token.empty()) return token;
  token = "adl_setup_" + random.hex(24);
  const std::string temporary = path_ + ".new";
  const UniqueFd fd(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  const std::string line = token + "\n";
  if (!fd.valid() ||
      ::write(fd.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()) ||
      ::fsync(fd.get()) != 0 || ::rename(temporary.c_str(), path_.c_str()) != 0)
    return errno_error(fmt::format("write the setup token to '{}'", path_), errno);
  return token;
}

Status SetupToken::check(std::string_view token) const {
  const auto wanted = path_.empty() ? std::string() : read_token(path_);
  if (!wanted.empty() && equal_secret(wanted, token)) return {};
  return Error(ErrorKind::kDenied, "bad_setup_token", "the setup token is wrong or was used",
               "the server prints it at its first start and keeps it in its state folder");
}

void SetupToken::used() {
  ::unlink(path_.c_str());
}

}  // namespace autodl
