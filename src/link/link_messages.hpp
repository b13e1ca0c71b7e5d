// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The link's small messages (the sets are in wire/set_json.hpp). Parsed as hostile input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace autodl {

enum class LinkFrame : std::uint8_t {
  kHello = 1,
  kDesired = 2,
  kObserved = 3,
  kEvent = 4,
  kPing = 5,
  kPong = 6,
  kRefused = 7,  // node → control: why the last desired set was not taken
};

inline constexpr std::int64_t kLinkVersion = 1;  // neighbours (±1) understand each other

struct LinkHello {
  std::int64_t version = kLinkVersion;
  std::string role;     // "control", "node"
  std::string cluster;  // control's
  std::uint64_t epoch = 0;
  NodeId node;  // node's
  std::string boot_id;
  bool operator==(const LinkHello&) const = default;
};

// A line for an instance's events; type "progress" or "warning".
struct LinkEvent {
  InstanceId instance;
  std::string type;
  std::string message;
  bool operator==(const LinkEvent&) const = default;
};

std::string to_json(const LinkHello& hello);
std::string to_json(const LinkEvent& event);
std::string refusal_to_json(const Error& error);
Result<LinkHello> parse_link_hello(std::string_view json);  // kUnsupported link_version
Result<LinkEvent> parse_link_event(std::string_view json);
Error parse_refusal(std::string_view json);  // what was told, or why it can't be read

}  // namespace autodl
