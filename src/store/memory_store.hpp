// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// MemoryStore: a Store in memory, for tests and simulation. It survives its users' "crashes" (the
// simulation keeps it and opens a new core on it) and can fail at the n-th commit.
#pragma once

#include <map>
#include <string>

#include "store/store.hpp"

namespace autodl {

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(std::string cluster) : cluster_(std::move(cluster)) {}

  Result<Snapshot> load() override;
  Status commit(const Batch& batch) override;
  Result<std::vector<Event>> events(const AccountId& account, const InstanceId& instance,
                                    std::int64_t after, std::size_t limit) override;
  Result<std::vector<LedgerEntry>> entries(const AccountId& account, const InstanceId& instance,
                                           std::int64_t after, std::size_t limit) override;
  Result<std::vector<LedgerEntry>> statement(const EntryFilter& filter) override;
  Result<std::vector<AuditRow>> audit(const AuditFilter& filter) override;
  Result<std::vector<CardFact>> card_facts(const CardId& card, std::optional<std::int64_t> before,
                                           std::size_t limit) override;

  // The n-th commit from now (1: the next) fails; applied: all of it is there all the same, as
  // when the power went between the disk's write and its answer.
  void fail_at(std::int64_t n, bool applied) {
    fail_in_ = n;
    fail_applied_ = applied;
  }
  const std::map<std::int64_t, LedgerEntry>& all_entries() const { return entries_; }
  const std::map<std::int64_t, Event>& all_events() const { return events_; }
  const std::map<std::string, RunRow>& all_runs() const { return runs_; }
  const std::map<std::string, InstanceRow>& all_instances() const { return instances_; }

 private:
  Status check_new(const Batch& batch) const;

  std::string cluster_;
  std::uint64_t epoch_ = 0;
  std::int64_t fail_in_ = 0;
  bool fail_applied_ = false;
  std::map<std::string, AccountRow> accounts_;
  std::map<std::string, InstanceRow> instances_;
  std::map<std::string, RunRow> runs_;
  std::map<std::string, TokenRow> tokens_;
  std::map<std::string, AccessKeyRow> access_keys_;
  std::map<std::string, SshKeyRow> ssh_keys_;
  std::map<std::string, BalanceRow> balances_;
  std::map<std::string, IdempotencyRow> idempotency_;
  std::map<std::string, NonceRow> nonces_;
  std::map<std::int64_t, Event> events_;
  std::map<std::int64_t, LedgerEntry> entries_;
  std::map<std::int64_t, PriceRow> prices_;
  std::map<std::string, VoucherRow> vouchers_;
  std::map<std::string, GroupRow> groups_;
  std::map<std::int64_t, AuditRow> audit_;
  std::map<std::int64_t, CardFact> card_facts_;
  std::map<std::string, NodeRow> nodes_;
  std::map<std::string, CardRow> cards_;
  std::map<std::string, ImageAliasRow> image_aliases_;
  std::map<std::string, IntervalRow> intervals_;
};

}  // namespace autodl
