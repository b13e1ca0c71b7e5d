// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "control/api/failures.hpp"

#include "http/problem.hpp"

namespace autodl {
namespace {

struct CodeStatus {
  std::string_view code;
  int status;
};

// What differs from the table of kinds (base/error.cpp).
constexpr CodeStatus kStatuses[] = {
    {"bad_json", 400},     {"bad_query", 400},        {"missing_credentials", 401},
    {"unknown_key", 401},  {"bad_signature", 401},    {"clock_skew", 401},
    {"replayed", 401},     {"bad_token", 401},        {"length_required", 411},
    {"file_changed", 412}, {"upgrade_required", 426}, {"no_space", 507},
};

}  // namespace

int api_status_of(const Error& error) {
  for (const auto& row : kStatuses)
    if (row.code == error.code()) return row.status;
  return http_status_of(error.kind());
}

http::Response failure_response(const Error& error, std::string_view request_id, const Clock& clock,
                                boost::json::object extra) {
  const int status = api_status_of(error);
  if (error.code() == "clock_skew") extra["server_time"] = to_rfc3339(clock.utc_now());
  auto response = http::problem_response(error, request_id, status, std::move(extra));
  if (status == 401) response.headers.add("WWW-Authenticate", "Bearer, ADL1-HMAC-SHA256");
  if (status == 503 || status == 429) response.headers.add("Retry-After", "2");
  return response;
}

}  // namespace autodl
