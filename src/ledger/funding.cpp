// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "ledger/funding.hpp"

#include <algorithm>

namespace autodl {
namespace {

// The position beyond which a fund pays nothing. Whole seconds: charge_micro drops the begun one.
std::int64_t limit_micro(const RunTerms& terms, const Fund& fund) {
  return charge_micro(terms.price_micro, terms.cards, std::max<std::int64_t>(fund.limit_ms, 0));
}

// How much of `amount` of a fund is of use from `position` on towards `goal`.
std::int64_t poured(const RunTerms& terms, const Fund& fund, std::int64_t position,
                    std::int64_t amount, std::int64_t goal) {
  const std::int64_t end = std::min(goal, limit_micro(terms, fund));
  return std::clamp<std::int64_t>(end - position, 0, std::max<std::int64_t>(amount, 0));
}

// What each fund gives, in their order, of what amount_of says that it has.
template <class AmountOf>
std::vector<std::int64_t> pour_all(const RunTerms& terms, const std::vector<Fund>& funds,
                                   std::int64_t goal, AmountOf amount_of) {
  std::vector<std::int64_t> out;
  std::int64_t position = terms.settled_micro;
  for (const auto& fund : funds) {
    out.push_back(poured(terms, fund, position, amount_of(fund), goal));
    position += out.back();
  }
  return out;
}

}  // namespace

std::int64_t covered_micro(const RunTerms& terms, const std::vector<Fund>& funds,
                           std::int64_t amount) {
  std::int64_t position = terms.settled_micro;
  for (const auto& fund : funds) {
    const std::int64_t part = std::clamp<std::int64_t>(amount, 0, fund.held);
    amount -= part;
    position += poured(terms, fund, position, part, kMicroMax);
  }
  return position;
}

std::int64_t needed_micro(const RunTerms& terms, const std::vector<Fund>& funds,
                          std::int64_t goal) {
  std::int64_t position = terms.settled_micro;
  std::int64_t amount = 0;
  for (const auto& fund : funds) {
    if (position >= goal) break;
    const std::int64_t use = poured(terms, fund, position, fund.held, goal);
    position += use;
    amount += position >= goal ? use : fund.held;
  }
  return amount;
}

std::vector<std::int64_t> plan_holds(const RunTerms& terms, const std::vector<Fund>& funds,
                                     std::int64_t goal) {
  return pour_all(terms, funds, goal, [](const Fund& fund) { return fund.held + fund.free; });
}

std::vector<std::int64_t> plan_charge(const RunTerms& terms, const std::vector<Fund>& funds,
                                      std::int64_t total) {
  return pour_all(terms, funds, total, [](const Fund& fund) { return fund.held; });
}

}  // namespace autodl
