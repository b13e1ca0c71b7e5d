// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The endpoint table: which port belongs to which instance. Control sends it whole, as one line of
// JSON, at each change; the gateway keeps the last one.
//   {"endpoints":[{"host":"127.0.0.1","port":20001,"instance":"01J…","name":"001",
//                  "state":"running"}]}
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace autodl {

struct Endpoint {
  std::string host;  // address it is bound to, IPv4
  std::uint16_t port = 0;
  InstanceId instance;
  std::string name;   // for the message to people
  std::string state;  // the instance's state word
  bool operator==(const Endpoint&) const = default;
};

inline constexpr std::size_t kSnapshotBytesMax = 8 << 20;

std::string print_endpoints(const std::vector<Endpoint>& endpoints);  // one line, with newline
Result<std::vector<Endpoint>> parse_endpoints(std::string_view line);

// What somebody reads who connects to an instance that does not run. SSH allows text lines before
// its version string, so clients show it.
std::string not_running_text(const Endpoint& endpoint);

}  // namespace autodl
