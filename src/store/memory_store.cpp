// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "store/memory_store.hpp"

#include <fmt/format.h>

namespace autodl {
namespace {

std::string key_of(const AccountRow& row) {
  return row.id.str();
}
std::string key_of(const InstanceRow& row) {
  return row.id.str();
}
std::string key_of(const RunRow& row) {
  return row.id.str();
}
std::string key_of(const TokenRow& row) {
  return row.hash;
}
std::string key_of(const AccessKeyRow& row) {
  return row.key_id;
}
std::string key_of(const SshKeyRow& row) {
  return row.id;
}
std::string key_of(const BalanceRow& row) {
  return fmt::format("{} {} {} {}", row.account.str(), to_string(row.book), row.run.str(),
                     row.voucher.str());
}
std::string key_of(const IdempotencyRow& row) {
  return row.account.str() + " " + row.key;
}
std::string key_of(const NonceRow& row) {
  return row.key_id + " " + row.nonce;
}
std::string key_of(const IntervalRow& row) {
  return fmt::format("{} {:08}", row.run.str(), row.number);
}
std::int64_t key_of(const PriceRow& row) {
  return row.number;
}
std::string key_of(const VoucherRow& row) {
  return row.id.str();
}
std::string key_of(const GroupRow& row) {
  return row.id.str();
}
std::int64_t key_of(const AuditRow& row) {
  return row.seq;
}
std::int64_t key_of(const CardFact& row) {
  return row.seq;
}
std::string key_of(const NodeRow& row) {
  return row.id.str();
}
std::string key_of(const CardRow& row) {
  return row.id.str();
}
std::string key_of(const ImageAliasRow& row) {
  return row.alias;
}
std::int64_t key_of(const Event& row) {
  return row.seq;
}
std::int64_t key_of(const LedgerEntry& row) {
  return row.seq;
}

template <class Key, class Row>
void put(std::map<Key, Row>& table, const std::vector<Row>& rows) {
  for (const auto& row : rows) table[key_of(row)] = row;
}

template <class Key, class Row>
std::vector<Row> all(const std::map<Key, Row>& table) {
  std::vector<Row> rows;
  for (const auto& [key, row] : table) rows.push_back(row);
  return rows;
}

template <class Key, class Row>
Status check_appended(const std::map<Key, Row>& table, const std::vector<Row>& rows) {
  for (const auto& row : rows) {
    if (table.contains(key_of(row))) {
      return Error(ErrorKind::kInternal, "duplicate_row",
                   fmt::format("a second row under key {}", key_of(row)));
    }
  }
  return {};
}

template <class Row>
std::vector<Row> select(const std::map<std::int64_t, Row>& table, const AccountId& account,
                        const InstanceId& instance, std::int64_t after, std::size_t limit) {
  std::vector<Row> rows;
  for (auto at = table.upper_bound(after); at != table.end() && rows.size() < limit; ++at) {
    const Row& row = at->second;
    if (!account.empty() && row.account != account) continue;
    if (!instance.empty() && row.instance != instance) continue;
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

bool Batch::empty() const {
  return accounts.empty() && instances.empty() && runs.empty() && tokens.empty() &&
         access_keys.empty() && ssh_keys.empty() && balances.empty() && idempotency.empty() &&
         nonces.empty() && events.empty() && entries.empty() && intervals.empty() &&
         prices.empty() && vouchers.empty() && groups.empty() && audit.empty() &&
         card_facts.empty() && nodes.empty() && cards.empty() && image_aliases.empty() &&
         !forget_nonces_before && !forget_idempotency_before;
}

Result<Snapshot> MemoryStore::load() {
  Snapshot snapshot;
  snapshot.cluster = cluster_;
  snapshot.epoch = ++epoch_;
  snapshot.accounts = all(accounts_);
  snapshot.instances = all(instances_);
  snapshot.runs = all(runs_);
  snapshot.tokens = all(tokens_);
  snapshot.access_keys = all(access_keys_);
  snapshot.ssh_keys = all(ssh_keys_);
  snapshot.balances = all(balances_);
  snapshot.idempotency = all(idempotency_);
  snapshot.nonces = all(nonces_);
  snapshot.intervals = all(intervals_);
  snapshot.prices = all(prices_);
  snapshot.vouchers = all(vouchers_);
  snapshot.groups = all(groups_);
  snapshot.nodes = all(nodes_);
  snapshot.cards = all(cards_);
  snapshot.image_aliases = all(image_aliases_);
  snapshot.last_audit_seq = audit_.empty() ? 0 : audit_.rbegin()->first;
  snapshot.last_card_fact_seq = card_facts_.empty() ? 0 : card_facts_.rbegin()->first;
  snapshot.last_event_seq = events_.empty() ? 0 : events_.rbegin()->first;
  snapshot.last_entry_seq = entries_.empty() ? 0 : entries_.rbegin()->first;
  return snapshot;
}

Status MemoryStore::check_new(const Batch& batch) const {
  ADL_TRY_STATUS(check_appended(events_, batch.events));
  ADL_TRY_STATUS(check_appended(entries_, batch.entries));
  ADL_TRY_STATUS(check_appended(intervals_, batch.intervals));
  ADL_TRY_STATUS(check_appended(prices_, batch.prices));
  ADL_TRY_STATUS(check_appended(audit_, batch.audit));
  ADL_TRY_STATUS(check_appended(card_facts_, batch.card_facts));
  return check_appended(nonces_, batch.nonces);
}

Status MemoryStore::commit(const Batch& batch) {
  const bool fails = fail_in_ > 0 && --fail_in_ == 0;
  const Error failure(ErrorKind::kUnavailable, "store_failed", "commit: the disk failed (planted)");
  if (fails && !fail_applied_) return failure;
  ADL_TRY_STATUS(check_new(batch));
  put(accounts_, batch.accounts);
  put(instances_, batch.instances);
  put(runs_, batch.runs);
  put(tokens_, batch.tokens);
  put(access_keys_, batch.access_keys);
  put(ssh_keys_, batch.ssh_keys);
  put(balances_, batch.balances);
  std::erase_if(balances_, [](const auto& item) {
    const BalanceRow& row = item.second;
    return row.amount_micro == 0 && (!row.run.empty() || !row.voucher.empty());
  });
  put(idempotency_, batch.idempotency);
  put(nonces_, batch.nonces);
  put(events_, batch.events);
  put(entries_, batch.entries);
  put(intervals_, batch.intervals);
  put(prices_, batch.prices);
  put(vouchers_, batch.vouchers);
  put(groups_, batch.groups);
  put(audit_, batch.audit);
  put(card_facts_, batch.card_facts);
  put(nodes_, batch.nodes);
  put(cards_, batch.cards);
  put(image_aliases_, batch.image_aliases);
  if (const auto before = batch.forget_nonces_before) {
    std::erase_if(nonces_, [&](const auto& item) { return item.second.at < *before; });
  }
  if (const auto before = batch.forget_idempotency_before) {
    std::erase_if(idempotency_, [&](const auto& item) { return item.second.at < *before; });
  }
  if (fails) return failure;
  return {};
}

Result<std::vector<Event>> MemoryStore::events(const AccountId& account, const InstanceId& instance,
                                               std::int64_t after, std::size_t limit) {
  return select(events_, account, instance, after, limit);
}

Result<std::vector<LedgerEntry>> MemoryStore::entries(const AccountId& account,
                                                      const InstanceId& instance,
                                                      std::int64_t after, std::size_t limit) {
  return select(entries_, account, instance, after, limit);
}

Result<std::vector<LedgerEntry>> MemoryStore::statement(const EntryFilter& filter) {
  std::vector<LedgerEntry> rows;
  for (auto at = entries_.upper_bound(filter.after);
       at != entries_.end() && rows.size() < filter.limit; ++at) {
    const LedgerEntry& row = at->second;
    const bool of_hold = row.kind == EntryKind::kHold || row.kind == EntryKind::kHoldRelease;
    const bool wanted = row.account == filter.account &&
                        (filter.instance.empty() || row.instance == filter.instance) &&
                        (!filter.kind || row.kind == *filter.kind) &&
                        (!filter.from || row.at >= *filter.from) &&
                        (!filter.to || row.at < *filter.to) && (filter.holds || !of_hold);
    if (wanted) rows.push_back(row);
  }
  return rows;
}

Result<std::vector<AuditRow>> MemoryStore::audit(const AuditFilter& filter) {
  std::vector<AuditRow> rows;
  for (auto at = audit_.rbegin(); at != audit_.rend() && rows.size() < filter.limit; ++at) {
    const AuditRow& row = at->second;
    const bool begins = filter.action.ends_with('.') && row.action.starts_with(filter.action);
    const bool wanted = (!filter.before || row.seq < *filter.before) &&
                        (filter.actor.empty() || row.actor == filter.actor) &&
                        (filter.action.empty() || row.action == filter.action || begins) &&
                        (filter.target.empty() || row.target == filter.target);
    if (wanted) rows.push_back(row);
  }
  return rows;
}

Result<std::vector<CardFact>> MemoryStore::card_facts(const CardId& card,
                                                      std::optional<std::int64_t> before,
                                                      std::size_t limit) {
  std::vector<CardFact> rows;
  for (auto at = card_facts_.rbegin(); at != card_facts_.rend() && rows.size() < limit; ++at) {
    if (at->second.card != card || (before && at->first >= *before)) continue;
    rows.push_back(at->second);
  }
  return rows;
}

}  // namespace autodl
