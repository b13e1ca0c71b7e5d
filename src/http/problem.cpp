// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "http/problem.hpp"

#include <boost/json/serialize.hpp>

#include "base/log.hpp"
#include "base/utf8.hpp"

namespace autodl::http {

std::string title_of_code(std::string_view code) {
  std::string title(code);
  for (char& c : title)
    if (c == '_') c = ' ';
  if (!title.empty() && title[0] >= 'a' && title[0] <= 'z')
    title[0] = static_cast<char>(title[0] - 'a' + 'A');
  return title;
}

Response problem_response(const Error& error, std::string_view request_id, int status,
                          boost::json::object extra) {
  const bool internal = error.kind() == ErrorKind::kInternal;
  if (internal) log_error("http", "request {}: {}: {}", request_id, error.code(), error.message());
  const std::string code = internal ? "internal" : error.code();
  boost::json::object body;
  body["type"] = "urn:autodl:problem:" + code;
  body["title"] = title_of_code(code);
  body["status"] = status != 0 ? status : http_status_of(error.kind());
  body["code"] = code;
  body["detail"] =
      internal ? "the server has failed at this; it is logged" : to_valid_utf8(error.message());
  body["remedy"] = internal ? "try again; if it stays, tell the operator the request id"
                            : to_valid_utf8(error.remedy());
  body["request_id"] = request_id;
  for (auto& [key, value] : extra) body[key] = std::move(value);
  Response response;
  response.status = status != 0 ? status : http_status_of(error.kind());
  response.headers.add("Content-Type", "application/problem+json");
  response.body = boost::json::serialize(body);
  return response;
}

}  // namespace autodl::http
