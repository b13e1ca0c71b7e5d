// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Router: method and path to handler. Patterns are "/api/v1/instances/{id}/start"; a parameter is
// one whole segment, handed over decoded (an encoded slash stays within it).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "async/task.hpp"
#include "http/exchange.hpp"

namespace autodl::http {

using Handler = std::function<Task<void>(Exchange&)>;

enum class BodyMode { kWhole, kStreamed };

struct Route {
  std::string method;
  std::string pattern;
  Handler handler;
  BodyMode body = BodyMode::kWhole;
  std::size_t body_bytes_max = 1 << 20;
};

class Router {
 public:
  void add(Route route);

  struct Match {
    const Route* route = nullptr;  // none: see allowed
    std::map<std::string, std::string, std::less<>> params;
    std::string allowed;        // methods of this path, "GET, POST"; empty: no such path
    bool bad_encoding = false;  // a percent code is wrong
  };
  // HEAD is answered by GET's handler.
  Match find(std::string_view method, std::string_view path) const;
  const std::vector<Route>& routes() const { return routes_; }

 private:
  struct Segment {
    std::string text;  // literal, or the parameter's name
    bool is_param = false;
  };
  std::vector<Route> routes_;
  std::vector<std::vector<Segment>> segments_;  // of the route with the same index
};

}  // namespace autodl::http
