// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// SqliteStore: the embedded store. WAL, synchronous = FULL (a commit that returned survives power
// loss), typed columns, migrations that only go forward. `<path>.lock` is held with flock while it
// is open: one active control per store. Files are made 0600.
#pragma once

#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "store/store.hpp"

namespace autodl {

class SqliteStore final : public Store {
 public:
  // Errors: kConflict store_in_use (another control has it), kUnsupported store_too_new (an older
  // program on a newer schema), kInternal store_failed.
  static Result<std::unique_ptr<SqliteStore>> open(const std::string& path, const Clock& clock,
                                                   Random& random);
  ~SqliteStore() override;

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

 private:
  struct Impl;
  explicit SqliteStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace autodl
