// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "wire/api_json.hpp"

#include <fmt/format.h>

#include <boost/json/parse.hpp>

namespace autodl::api {
namespace {

std::string shown(const std::string& path) {
  return path.empty() ? "the body" : "'" + path + "'";
}

Error bad_field(std::string message) {
  return Error(ErrorKind::kInvalid, "bad_field", std::move(message));
}

}  // namespace

Result<boost::json::value> parse_json(std::string_view text) {
  boost::json::parse_options options;
  options.max_depth = 16;
  boost::system::error_code error;
  auto value = boost::json::parse({text.data(), text.size()}, error, {}, options);
  if (error)
    return Error(ErrorKind::kInvalid, "bad_json", "the body is no JSON: " + error.message(),
                 "send one JSON object in UTF-8");
  return value;
}

namespace detail {

Error wrong_type(const std::string& path, std::string_view wanted) {
  return bad_field(fmt::format("{} must be {}", shown(path), wanted));
}

Error unknown_member(const std::string& path, std::string_view name) {
  return Error(ErrorKind::kInvalid, "unknown_field",
               fmt::format("'{}/{}' is not known", path, name.substr(0, 100)),
               "remove it, or check its spelling");
}

Error missing_member(const std::string& path, std::string_view name) {
  return Error(ErrorKind::kInvalid, "missing_field", fmt::format("'{}/{}' is missing", path, name));
}

Status check_text(const std::string& path, std::string_view text, const FieldRule& rule) {
  if (text.size() > rule.bytes_max)
    return bad_field(fmt::format("{} is longer than {} bytes", shown(path), rule.bytes_max));
  if (text.find('\0') != std::string_view::npos)
    return bad_field(fmt::format("{} has a NUL character", shown(path)));
  return {};
}

Status check_number(const std::string& path, std::int64_t number, const FieldRule& rule) {
  if (number < rule.min || number > rule.max)
    return bad_field(fmt::format("{} must be from {} to {}", shown(path), rule.min, rule.max));
  return {};
}

Status check_count(const std::string& path, std::size_t count, const FieldRule& rule) {
  if (count > rule.count_max)
    return bad_field(fmt::format("{} has more than {} items", shown(path), rule.count_max));
  return {};
}

void append_text(std::string& out, std::string_view text) {
  out += '"';
  std::size_t plain_from = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text.substr(plain_from, i - plain_from));
    plain_from = i + 1;
    if (c == '"' || c == '\\')
      out.append({'\\', text[i]});
    else if (c == '\n')
      out += "\\n";
    else
      out += fmt::format("\\u{:04x}", c);
  }
  out.append(text.substr(plain_from));
  out += '"';
}

}  // namespace detail
}  // namespace autodl::api
