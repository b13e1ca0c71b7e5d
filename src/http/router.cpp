// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "http/router.hpp"

#include "http/url.hpp"

namespace autodl::http {
namespace {

// "/a/b" -> a, b; "/" -> one empty segment. The text must begin with a slash.
std::vector<std::string_view> split_path(std::string_view path) {
  std::vector<std::string_view> pieces;
  while (!path.empty()) {
    path.remove_prefix(1);
    const auto end = std::min(path.find('/'), path.size());
    pieces.push_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  return pieces;
}

}  // namespace

void Router::add(Route route) {
  std::vector<Segment> segments;
  for (const auto piece : split_path(route.pattern)) {
    const bool is_param = piece.size() > 2 && piece.front() == '{' && piece.back() == '}';
    segments.push_back(is_param ? Segment{std::string(piece.substr(1, piece.size() - 2)), true}
                                : Segment{std::string(piece), false});
  }
  segments_.push_back(std::move(segments));
  routes_.push_back(std::move(route));
}

Router::Match Router::find(std::string_view method, std::string_view path) const {
  Match match;
  if (path.empty() || path.front() != '/') return match;
  const auto pieces = split_path(path);
  for (std::size_t index = 0; index < routes_.size(); ++index) {
    const auto& segments = segments_[index];
    if (segments.size() != pieces.size()) continue;
    bool same = true;
    for (std::size_t i = 0; same && i < pieces.size(); ++i)
      same = segments[i].is_param ? !pieces[i].empty() : segments[i].text == pieces[i];
    if (!same) continue;
    const Route& route = routes_[index];
    if (route.method != method && !(method == "HEAD" && route.method == "GET")) {
      match.allowed += (match.allowed.empty() ? "" : ", ") + route.method;
      continue;
    }
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (!segments[i].is_param) continue;
      auto value = percent_decode(pieces[i]);
      if (!value) {
        match.bad_encoding = true;
        return match;
      }
      match.params[segments[i].text] = std::move(*value);
    }
    match.route = &route;
    return match;
  }
  return match;
}

}  // namespace autodl::http
