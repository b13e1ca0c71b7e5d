// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Store: durable state of control. One Batch is one atomic, durable transaction: after commit()
// returned, all of it is there whatever happens; after an error, none or all (the caller ends and
// loads again). One active control per store. Called from one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "ledger/ledger.hpp"
#include "model/rows.hpp"

namespace autodl {

// Rows are whole and replace the one with the same key; events, entries and intervals are
// appended, and a second one under the same key is an error (kInternal duplicate_row).
struct Batch {
  std::vector<AccountRow> accounts;
  std::vector<InstanceRow> instances;
  std::vector<RunRow> runs;
  std::vector<TokenRow> tokens;
  std::vector<AccessKeyRow> access_keys;
  std::vector<SshKeyRow> ssh_keys;
  std::vector<BalanceRow> balances;
  std::vector<IdempotencyRow> idempotency;
  std::vector<NonceRow> nonces;
  std::vector<Event> events;
  std::vector<LedgerEntry> entries;
  std::vector<IntervalRow> intervals;
  std::vector<PriceRow> prices;  // appended
  std::vector<VoucherRow> vouchers;
  std::vector<GroupRow> groups;
  std::vector<AuditRow> audit;       // appended
  std::vector<CardFact> card_facts;  // appended
  std::vector<NodeRow> nodes;
  std::vector<CardRow> cards;
  std::vector<ImageAliasRow> image_aliases;
  std::optional<UtcTime> forget_nonces_before;
  std::optional<UtcTime> forget_idempotency_before;

  bool empty() const;
};

// Everything but events, entries, audit and card facts.
struct Snapshot {
  std::string cluster;      // ULID, made with the store
  std::uint64_t epoch = 0;  // grows with each open: a node refuses a lower one
  std::vector<AccountRow> accounts;
  std::vector<InstanceRow> instances;
  std::vector<RunRow> runs;
  std::vector<TokenRow> tokens;
  std::vector<AccessKeyRow> access_keys;
  std::vector<SshKeyRow> ssh_keys;
  std::vector<BalanceRow> balances;
  std::vector<IdempotencyRow> idempotency;
  std::vector<NonceRow> nonces;
  std::vector<IntervalRow> intervals;
  std::vector<PriceRow> prices;
  std::vector<VoucherRow> vouchers;
  std::vector<GroupRow> groups;
  std::vector<NodeRow> nodes;
  std::vector<CardRow> cards;
  std::vector<ImageAliasRow> image_aliases;
  std::int64_t last_event_seq = 0;
  std::int64_t last_entry_seq = 0;
  std::int64_t last_audit_seq = 0;
  std::int64_t last_card_fact_seq = 0;
};

// What of an account's entries is wanted; an unset member allows all. seq > after, ascending.
struct EntryFilter {
  AccountId account;
  InstanceId instance;
  std::optional<EntryKind> kind;
  std::optional<UtcTime> from;  // at >= from
  std::optional<UtcTime> to;    // at < to
  bool holds = true;            // hold and hold_release too
  std::int64_t after = 0;
  std::size_t limit = 100;
};

// What of the audit is wanted; an unset member allows all. seq < before, newest first.
struct AuditFilter {
  std::optional<std::int64_t> before;
  AccountId actor;
  std::string action;  // "user.disable", or "user." for all that begin so
  std::string target;
  std::size_t limit = 100;
};

class Store {
 public:
  virtual ~Store() = default;
  virtual Result<Snapshot> load() = 0;
  virtual Status commit(const Batch& batch) = 0;
  // seq > after, ascending; account empty: all accounts; instance empty: all of the account.
  virtual Result<std::vector<Event>> events(const AccountId& account, const InstanceId& instance,
                                            std::int64_t after, std::size_t limit) = 0;
  virtual Result<std::vector<LedgerEntry>> entries(const AccountId& account,
                                                   const InstanceId& instance, std::int64_t after,
                                                   std::size_t limit) = 0;
  // An account's statement: what moved its money, holds and their release only where kind asks.
  virtual Result<std::vector<LedgerEntry>> statement(const EntryFilter& filter) = 0;
  virtual Result<std::vector<AuditRow>> audit(const AuditFilter& filter) = 0;
  // Newest first, seq < before where it is set.
  virtual Result<std::vector<CardFact>> card_facts(const CardId& card,
                                                   std::optional<std::int64_t> before,
                                                   std::size_t limit) = 0;
};

}  // namespace autodl
