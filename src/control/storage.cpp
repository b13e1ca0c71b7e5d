// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What disks cost: counted by the hour in pieces of one price each, half to even on a piece's
// total; a piece ends where the price changes.
#include <algorithm>

#include "control/detail/core_state.hpp"

namespace autodl {
namespace {

constexpr std::int64_t kHourMs = 3'600'000;

}  // namespace

void ControlCore::State::count_storage(bool at_once) {
  const auto elapsed = std::chrono::duration_cast<Millis>(steady() - stored_at).count();
  if (elapsed < kHourMs && !at_once) return;
  stored_at = steady();
  for (auto& [id, row] : instances) {
    if (!row.disk_ready || row.state == InstanceState::kReleased) continue;
    count_disk(row, elapsed);
    charge_storage(row);
  }
}

// The last `elapsed_ms`, cut where the price changed within them.
void ControlCore::State::count_disk(InstanceRow& row, std::int64_t elapsed_ms) {
  const UtcTime end = now();
  UtcTime at = end - Millis(elapsed_ms);
  std::vector<UtcTime> cuts;
  if (const auto found = prices.find(kStorageItem); found != prices.end()) {
    for (const auto& price : found->second) {
      if (price.from > at && price.from < end) cuts.push_back(price.from);
    }
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.push_back(end);
  std::int64_t counted = 0;
  for (const auto& cut : cuts) {
    const std::int64_t price = price_at(kStorageItem, at).value_or(0);
    const std::int64_t until =
        cut == end ? elapsed_ms : elapsed_ms - std::chrono::floor<Millis>(end - cut).count();
    add_piece(row, std::max<std::int64_t>(until - counted, 0), price);
    counted = std::max(counted, until);
    at = cut;
  }
}

void ControlCore::State::add_piece(InstanceRow& row, std::int64_t ms, std::int64_t price) {
  const bool was_free = row.storage_price_micro <= 0 && row.storage_before_micro == 0;
  if (ms == 0 || (price == 0 && was_free && row.storage_piece_ms == 0)) return;
  change(row).storage_ms += ms;
  if (row.storage_price_micro == -1) row.storage_price_micro = price;
  if (row.storage_price_micro != price) {
    row.storage_before_micro +=
        storage_micro(row.storage_price_micro, row.disk_bytes, row.storage_piece_ms);
    row.storage_piece_ms = 0;
    row.storage_price_micro = price;
  }
  row.storage_piece_ms += ms;
}

// Up to what the account has and its group's budget allows: what is not paid stays due.
void ControlCore::State::charge_storage(InstanceRow& row) {
  const std::int64_t price = std::max<std::int64_t>(row.storage_price_micro, 0);
  std::int64_t due = row.storage_before_micro +
                     storage_micro(price, row.disk_bytes, row.storage_piece_ms) -
                     row.storage_charged_micro;
  due = std::min(due, room(row.account));
  auto funds = usable_vouchers(row.account);
  funds.emplace_back();  // cash last
  for (const auto& voucher : funds) {
    const std::int64_t have =
        voucher.empty() ? ledger.available(row.account) : ledger.voucher_left(voucher);
    const std::int64_t take = std::min(due, have);
    if (take <= 0) continue;
    const auto entry = ledger.charge_free(row.account, row.id, take, now(), "storage", voucher);
    if (!entry.ok()) continue;
    record(*entry);
    note_spent(row.account, take);
    change(row).storage_charged_micro += take;
    due -= take;
  }
}

}  // namespace autodl
