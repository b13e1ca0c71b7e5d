// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "gateway/endpoints.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>

namespace autodl {

namespace json = boost::json;

std::string print_endpoints(const std::vector<Endpoint>& endpoints) {
  json::array rows;
  for (const auto& endpoint : endpoints)
    rows.push_back(json::object{{"host", endpoint.host},
                                {"port", endpoint.port},
                                {"instance", endpoint.instance.str()},
                                {"name", endpoint.name},
                                {"state", endpoint.state}});
  return json::serialize(json::object{{"endpoints", std::move(rows)}}) + "\n";
}

namespace {

Error malformed(std::string_view what) {
  return Error(ErrorKind::kInvalid, "bad_snapshot", fmt::format("endpoint snapshot: {}", what));
}

Result<Endpoint> parse_row(const json::value& value) {
  const auto* row = value.if_object();
  if (row == nullptr) return malformed("an entry is not an object");
  const auto text = [&](std::string_view key) {
    const auto* member = row->if_contains(key);
    return member != nullptr && member->is_string() ? std::string(member->get_string())
                                                    : std::string();
  };
  const auto* port = row->if_contains("port");
  Endpoint endpoint;
  if (port == nullptr || !port->is_int64() || port->get_int64() < 1 || port->get_int64() > 65'535)
    return malformed("an entry has no port from 1 to 65535");
  endpoint.port = static_cast<std::uint16_t>(port->get_int64());
  endpoint.host = text("host");
  endpoint.instance = InstanceId(text("instance"));
  endpoint.name = text("name");
  endpoint.state = text("state");
  if (!is_ulid(endpoint.instance.str())) return malformed("an entry's instance is no id");
  if (endpoint.host.empty()) return malformed("an entry has no host");
  return endpoint;
}

}  // namespace

Result<std::vector<Endpoint>> parse_endpoints(std::string_view line) {
  boost::system::error_code failed;
  const auto parsed = json::parse(line, failed);
  if (failed || !parsed.is_object()) return malformed("not a JSON object");
  const auto* rows = parsed.get_object().if_contains("endpoints");
  if (rows == nullptr || !rows->is_array()) return malformed("no array 'endpoints'");
  std::vector<Endpoint> endpoints;
  for (const auto& row : rows->get_array()) {
    ADL_TRY(endpoint, parse_row(row));
    endpoints.push_back(std::move(endpoint));
  }
  return endpoints;
}

std::string not_running_text(const Endpoint& endpoint) {
  const auto plain = [](std::string text) {
    std::erase_if(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
    return text;
  };
  const auto name = plain(endpoint.name);
  const auto state = plain(endpoint.state);
  if (state == "queued" || state == "starting")
    return fmt::format("autodl: instance {} is {}; try again when it is running\r\n", name, state);
  return fmt::format("autodl: instance {} is {}; start it with: autodl start {}\r\n", name, state,
                     name);
}

}  // namespace autodl
