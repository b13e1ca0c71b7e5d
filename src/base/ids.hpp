// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Strong ids: ULIDs (26 characters of Crockford base 32, time first) with a type per noun.
#pragma once

#include <compare>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/random.hpp"

namespace autodl {

template <class Tag>
class Id {
 public:
  Id() = default;  // empty: "none"
  explicit Id(std::string value) : value_(std::move(value)) {}

  const std::string& str() const { return value_; }
  bool empty() const { return value_.empty(); }
  auto operator<=>(const Id&) const = default;

 private:
  std::string value_;
};

using AccountId = Id<struct AccountTag>;
using InstanceId = Id<struct InstanceTag>;
using RunId = Id<struct RunTag>;
using NodeId = Id<struct NodeTag>;
using CardId = Id<struct CardTag>;  // "GPU-…": the card's UUID, as NVML prints it
using TicketId = Id<struct TicketTag>;
using VoucherId = Id<struct VoucherTag>;
using GroupId = Id<struct GroupTag>;

// A new ULID from the clock and the random source; monotonic within one generator.
class UlidGenerator {
 public:
  UlidGenerator(const Clock& clock, Random& random) : clock_(clock), random_(random) {}
  std::string next();

 private:
  const Clock& clock_;
  Random& random_;
  std::string last_;
};

// Whether text is a ULID: what comes from outside is asked before it becomes an id.
bool is_ulid(std::string_view text);

}  // namespace autodl

template <class Tag>
struct std::hash<autodl::Id<Tag>> {
  std::size_t operator()(const autodl::Id<Tag>& id) const noexcept {
    return std::hash<std::string>{}(id.str());
  }
};
