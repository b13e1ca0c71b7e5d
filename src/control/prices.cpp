// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Prices from a time on. What the operator sets counts before what the configuration file says; a
// run keeps the price that it was accepted at. Where no money is taken (currency CREDIT) a card
// without a price costs one credit an hour.
#include <fmt/format.h>

#include <algorithm>

#include "control/detail/core_state.hpp"
#include "model/card_types.hpp"

namespace autodl {
namespace {

constexpr std::int64_t kPriceMax = 1'000'000'000'000;
constexpr std::int64_t kCreditPerHour = 1'000'000;
constexpr auto kLateMost = std::chrono::minutes{5};  // between an operator's clock and ours

bool is_card(const std::string& item) {
  return item != kNoCardItem && item != kStorageItem;
}

// The newest `from` that is not after `at`; of equal ones the one set last. Null: none counts yet.
const PriceRow* counting_at(const std::vector<PriceRow>& rows, UtcTime at) {
  const PriceRow* best = nullptr;
  for (const auto& row : rows) {
    if (row.from <= at && (best == nullptr || row.from >= best->from)) best = &row;
  }
  return best;
}

}  // namespace

std::optional<std::int64_t> ControlCore::State::price_at(const std::string& item,
                                                         UtcTime at) const {
  if (const auto found = prices.find(item); found != prices.end()) {
    if (const auto* row = counting_at(found->second, at)) return row->price_micro;
  }
  if (item == kNoCardItem) return config.no_card_micro_per_hour;
  if (item == kStorageItem) return config.storage_micro_per_gb_day;
  if (const auto found = config.prices_micro.find(item); found != config.prices_micro.end()) {
    return found->second;
  }
  if (config.currency == "CREDIT") return kCreditPerHour;
  return std::nullopt;
}

Result<PriceView> ControlCore::set_price(const RequestContext& context, std::string_view item,
                                         std::int64_t price_micro, std::optional<UtcTime> from,
                                         std::string_view reason) {
  State& state = *state_;
  ADL_TRY_STATUS(check_reason(reason));
  std::string name(item);
  if (is_card(name)) {
    const auto known = state.known_card_types();
    const auto meant = match_card_types(item, known);
    if (meant.size() != 1) {
      auto near = meant.empty() ? near_names(item, known) : meant;
      if (near.empty()) near = known;
      return Error(ErrorKind::kInvalid, "unknown_card",
                   fmt::format("'{}' is neither a card known here nor {} or {}",
                               item.substr(0, 100), kNoCardItem, kStorageItem),
                   near.empty() ? "no node has told of its cards yet"
                                : fmt::format("did you mean {}?", fmt::join(near, " or ")));
    }
    name = meant[0];
  }
  if (price_micro < 0 || price_micro > kPriceMax) {
    return Error(ErrorKind::kInvalid, "bad_price",
                 fmt::format("a price is 0 to {} micro-units", kPriceMax));
  }
  if (from && *from < state.now() - kLateMost) {
    return Error(ErrorKind::kInvalid, "bad_from", "a price can't begin in the past",
                 "leave the time out: it then counts at once");
  }
  const auto before = state.price_now(name);
  PriceRow row{name,        ++state.last_price, from.value_or(state.now()), price_micro,
               state.now(), context.caller,     std::string(reason)};
  state.batch.prices.push_back(row);
  state.prices[name].push_back(row);
  state.audit(
      context,
      {"price.set", name, before ? fmt::format(R"({{"price_micro":{}}})", *before) : "{}",
       fmt::format(R"({{"price_micro":{},"from":"{}"}})", price_micro, to_rfc3339(row.from)),
       std::string(reason)});
  return PriceView{row, true, row.from <= state.now(), state.config.currency};
}

std::vector<PriceView> ControlCore::prices() const {
  const State& state = *state_;
  std::vector<PriceView> out;
  std::set<std::string> items = {kNoCardItem, kStorageItem};
  for (const auto& name : state.known_card_types()) items.insert(name);
  for (const auto& item : items) {
    const auto found = state.prices.find(item);
    const PriceRow* best =
        found == state.prices.end() ? nullptr : counting_at(found->second, state.now());
    if (best == nullptr) {
      const auto price = state.price_now(item);
      if (price) {
        out.push_back({{item, 0, {}, *price, {}, {}, "the configuration file"},
                       false,
                       true,
                       state.config.currency});
      }
    }
    if (found == state.prices.end()) continue;
    for (const auto& row : found->second) {
      out.push_back({row, true, &row == best, state.config.currency});
    }
  }
  return out;
}

}  // namespace autodl
