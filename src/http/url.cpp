// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "http/url.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace autodl::http {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

}  // namespace

std::string percent_encode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (unreserved(c))
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int high = hex_value(text[i + 1]);
    const int low = hex_value(text[i + 2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

Result<Query> Query::parse(std::string_view text) {
  Query query;
  while (!text.empty()) {
    const auto piece = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(text.size(), piece.size() + 1));
    if (piece.empty()) continue;
    const auto equals = std::min(piece.find('='), piece.size());
    auto name = percent_decode(piece.substr(0, equals));
    auto value = percent_decode(piece.substr(std::min(piece.size(), equals + 1)));
    if (!name || !value)
      return Error(ErrorKind::kInvalid, "bad_query", "the query has a wrong percent code");
    if (query.get(*name))
      return Error(ErrorKind::kInvalid, "bad_query",
                   fmt::format("the query has '{}' twice", *name));
    query.pairs_.emplace_back(std::move(*name), std::move(*value));
  }
  return query;
}

std::optional<std::string> Query::get(std::string_view name) const {
  for (const auto& [key, value] : pairs_)
    if (key == name) return value;
  return std::nullopt;
}

Status Query::only(std::initializer_list<std::string_view> known) const {
  for (const auto& [key, value] : pairs_)
    if (std::find(known.begin(), known.end(), key) == known.end())
      return Error(ErrorKind::kInvalid, "unknown_parameter",
                   fmt::format("the query's '{}' is not known here", key),
                   known.size() == 0 ? std::string("this call takes no query")
                                     : fmt::format("known are: {}", fmt::join(known, ", ")));
  return {};
}

Result<Url> parse_url(std::string_view text) {
  const Error bad(ErrorKind::kInvalid, "bad_url", fmt::format("'{}' is no address", text),
                  "write http://HOST:PORT");
  Url url;
  const auto mark = text.find("://");
  if (mark == std::string_view::npos) return bad;
  url.scheme = std::string(text.substr(0, mark));
  if (url.scheme != "http" && url.scheme != "https") return bad;
  text.remove_prefix(mark + 3);
  const auto authority = text.substr(0, text.find('/'));
  url.path = std::string(text.substr(authority.size()));
  while (!url.path.empty() && url.path.back() == '/') url.path.pop_back();
  if (url.path.find_first_of("?# \r\n") != std::string::npos) return bad;

  std::string_view host = authority, port_text;
  if (!authority.empty() && authority.front() == '[') {
    const auto end = authority.find(']');
    if (end == std::string_view::npos) return bad;
    host = authority.substr(1, end - 1);
    const auto rest = authority.substr(end + 1);
    if (!rest.empty() && rest.front() != ':') return bad;
    if (!rest.empty()) port_text = rest.substr(1);
    if (!rest.empty() && port_text.empty()) return bad;
  } else if (const auto colon = authority.find(':'); colon != std::string_view::npos) {
    host = authority.substr(0, colon);
    port_text = authority.substr(colon + 1);
    if (port_text.empty()) return bad;
  }
  if (host.empty() || host.find_first_of("@?# \r\n") != std::string_view::npos) return bad;
  url.host = std::string(host);
  url.port = url.scheme == "https" ? 443 : 80;
  if (!port_text.empty()) {
    const auto [end, error] =
        std::from_chars(port_text.data(), port_text.data() + port_text.size(), url.port);
    if (error != std::errc{} || end != port_text.data() + port_text.size() || url.port == 0)
      return bad;
  }
  return url;
}

}  // namespace autodl::http
