// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The schema's history. A migration is never edited once released; a new one is added below it.
#pragma once

namespace autodl::store_detail {

inline constexpr const char* kMigrations[] = {
    // 1: the first schema. Times are UTC microseconds, money micro-units, lists and maps JSON.
    R"sql(
CREATE TABLE accounts(id TEXT PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL,
  created_at INTEGER NOT NULL, names_given INTEGER NOT NULL) STRICT;
CREATE TABLE instances(id TEXT PRIMARY KEY, account TEXT NOT NULL REFERENCES accounts(id),
  node TEXT NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL,
  remedy TEXT NOT NULL, image TEXT NOT NULL, image_resolved TEXT NOT NULL,
  image_digest TEXT NOT NULL, substituted INTEGER NOT NULL, gpu_type TEXT NOT NULL,
  gpu_count INTEGER NOT NULL, disk_bytes INTEGER NOT NULL, command TEXT, env TEXT NOT NULL,
  workdir TEXT NOT NULL, restart TEXT NOT NULL, max_runtime_s INTEGER, ssh_keys TEXT NOT NULL,
  slot INTEGER NOT NULL, port INTEGER NOT NULL, host_key TEXT NOT NULL,
  image_ready INTEGER NOT NULL, disk_ready INTEGER NOT NULL, release_asked INTEGER NOT NULL,
  run TEXT NOT NULL, run_count INTEGER NOT NULL, created_at INTEGER NOT NULL,
  storage_ms INTEGER NOT NULL, storage_charged_micro INTEGER NOT NULL) STRICT;
CREATE UNIQUE INDEX instances_port ON instances(port) WHERE port > 0;
CREATE UNIQUE INDEX instances_slot ON instances(slot) WHERE slot >= 0;
CREATE TABLE runs(id TEXT PRIMARY KEY, instance TEXT NOT NULL REFERENCES instances(id),
  account TEXT NOT NULL, attempt INTEGER NOT NULL, state TEXT NOT NULL, outcome TEXT,
  exit_code INTEGER, signal INTEGER, reason TEXT NOT NULL, remedy TEXT NOT NULL,
  gpu_type TEXT NOT NULL, gpu_count INTEGER NOT NULL, cards TEXT NOT NULL,
  price_micro INTEGER NOT NULL, requested_at INTEGER NOT NULL, granted_at INTEGER,
  ready_at INTEGER, ended_at INTEGER, running_ms INTEGER NOT NULL,
  hold_micro INTEGER NOT NULL CHECK(hold_micro >= 0), lease_micro INTEGER NOT NULL,
  settled_micro INTEGER NOT NULL, warned INTEGER NOT NULL, stop TEXT, stop_at_ms INTEGER NOT NULL,
  start_timed_out INTEGER NOT NULL) STRICT;
CREATE UNIQUE INDEX runs_attempt ON runs(instance, attempt);
CREATE TABLE tokens(hash TEXT PRIMARY KEY, account TEXT NOT NULL REFERENCES accounts(id),
  created_at INTEGER NOT NULL) STRICT;
CREATE TABLE access_keys(key_id TEXT PRIMARY KEY, account TEXT NOT NULL REFERENCES accounts(id),
  sealed TEXT NOT NULL, created_at INTEGER NOT NULL) STRICT;
CREATE TABLE ssh_keys(id TEXT PRIMARY KEY, account TEXT NOT NULL REFERENCES accounts(id),
  name TEXT NOT NULL, public_key TEXT NOT NULL, created_at INTEGER NOT NULL,
  removed INTEGER NOT NULL) STRICT;
CREATE TABLE ledger_balances(account TEXT NOT NULL, book TEXT NOT NULL, run TEXT NOT NULL,
  amount_micro INTEGER NOT NULL CHECK(amount_micro >= 0 OR book NOT IN ('wallet', 'held')),
  PRIMARY KEY(account, book, run)) STRICT, WITHOUT ROWID;
CREATE TABLE ledger_entries(seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, account TEXT NOT NULL,
  instance TEXT NOT NULL, run TEXT NOT NULL, kind TEXT NOT NULL, from_book TEXT NOT NULL,
  to_book TEXT NOT NULL, amount_micro INTEGER NOT NULL CHECK(amount_micro > 0),
  reason TEXT NOT NULL) STRICT;
CREATE INDEX ledger_entries_account ON ledger_entries(account, instance, seq);
CREATE TABLE idempotency(account TEXT NOT NULL, key TEXT NOT NULL, request_hash TEXT NOT NULL,
  status INTEGER NOT NULL, body TEXT NOT NULL, at INTEGER NOT NULL,
  PRIMARY KEY(account, key)) STRICT, WITHOUT ROWID;
CREATE TABLE nonces(key_id TEXT NOT NULL, nonce TEXT NOT NULL, at INTEGER NOT NULL,
  PRIMARY KEY(key_id, nonce)) STRICT, WITHOUT ROWID;
CREATE TABLE events(seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, type TEXT NOT NULL,
  account TEXT NOT NULL, instance TEXT NOT NULL, run TEXT NOT NULL, actor TEXT NOT NULL,
  data TEXT NOT NULL, message TEXT NOT NULL, request_id TEXT NOT NULL) STRICT;
CREATE INDEX events_account ON events(account, seq);
CREATE INDEX events_instance ON events(instance, seq);
CREATE TABLE intervals(run TEXT NOT NULL REFERENCES runs(id), number INTEGER NOT NULL,
  from_utc INTEGER NOT NULL, ms INTEGER NOT NULL CHECK(ms >= 0), billed INTEGER NOT NULL,
  reason TEXT NOT NULL, PRIMARY KEY(run, number)) STRICT, WITHOUT ROWID;
)sql",
    // 2: vouchers, prices from a time on, groups with a budget; audit, quotas, drained nodes,
    // cordoned
    // cards and their history, image aliases.
    R"sql(
ALTER TABLE accounts ADD COLUMN group_id TEXT NOT NULL DEFAULT '';
ALTER TABLE instances ADD COLUMN storage_before_micro INTEGER NOT NULL DEFAULT 0;
ALTER TABLE instances ADD COLUMN storage_piece_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE instances ADD COLUMN storage_price_micro INTEGER NOT NULL DEFAULT -1;
UPDATE instances SET storage_piece_ms = storage_ms;
ALTER TABLE ledger_entries ADD COLUMN voucher TEXT NOT NULL DEFAULT '';
CREATE INDEX ledger_entries_statement ON ledger_entries(account, seq);
CREATE TABLE balances_2(account TEXT NOT NULL, book TEXT NOT NULL, run TEXT NOT NULL,
  voucher TEXT NOT NULL, amount_micro INTEGER NOT NULL
  CHECK(amount_micro >= 0 OR book NOT IN ('wallet', 'held', 'voucher')),
  PRIMARY KEY(account, book, run, voucher)) STRICT, WITHOUT ROWID;
INSERT INTO balances_2 SELECT account, book, run, '', amount_micro FROM ledger_balances;
DROP TABLE ledger_balances;
ALTER TABLE balances_2 RENAME TO ledger_balances;
CREATE TABLE prices(item TEXT NOT NULL, number INTEGER PRIMARY KEY, from_utc INTEGER NOT NULL,
  price_micro INTEGER NOT NULL CHECK(price_micro >= 0), set_at INTEGER NOT NULL,
  set_by TEXT NOT NULL, reason TEXT NOT NULL) STRICT;
CREATE TABLE vouchers(id TEXT PRIMARY KEY, account TEXT NOT NULL REFERENCES accounts(id),
  amount_micro INTEGER NOT NULL CHECK(amount_micro > 0), created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL, given_by TEXT NOT NULL, reason TEXT NOT NULL) STRICT;
CREATE TABLE account_groups(id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE,
  budget_micro INTEGER CHECK(budget_micro >= 0), spent_micro INTEGER NOT NULL,
  created_at INTEGER NOT NULL) STRICT;
ALTER TABLE accounts ADD COLUMN disabled INTEGER NOT NULL DEFAULT 0;
ALTER TABLE accounts ADD COLUMN stop_runs_at INTEGER;
ALTER TABLE accounts ADD COLUMN cards_max INTEGER;
ALTER TABLE accounts ADD COLUMN instances_max INTEGER;
ALTER TABLE account_groups ADD COLUMN cards_max INTEGER;
ALTER TABLE account_groups ADD COLUMN instances_max INTEGER;
CREATE TABLE audit(seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, actor TEXT NOT NULL,
  actor_name TEXT NOT NULL, action TEXT NOT NULL, target TEXT NOT NULL, before TEXT NOT NULL,
  after TEXT NOT NULL, reason TEXT NOT NULL, request_id TEXT NOT NULL) STRICT;
CREATE TRIGGER audit_kept BEFORE DELETE ON audit
  BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER audit_as_written BEFORE UPDATE ON audit
  BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
CREATE TABLE nodes(id TEXT PRIMARY KEY, draining INTEGER NOT NULL, drain_until INTEGER,
  reason TEXT NOT NULL, changed_at INTEGER NOT NULL) STRICT;
CREATE TABLE cards(id TEXT PRIMARY KEY, cordoned INTEGER NOT NULL, reason TEXT NOT NULL,
  quarantine TEXT NOT NULL, changed_at INTEGER NOT NULL) STRICT;
CREATE TABLE card_facts(seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, what TEXT NOT NULL,
  card TEXT NOT NULL, node TEXT NOT NULL,
  type TEXT NOT NULL, account TEXT NOT NULL, instance TEXT NOT NULL,
  run TEXT NOT NULL, detail TEXT NOT NULL) STRICT;
CREATE INDEX card_facts_card ON card_facts(card, seq);
CREATE TABLE image_aliases(alias TEXT PRIMARY KEY, reference TEXT NOT NULL,
  changed_at INTEGER NOT NULL) STRICT;
)sql",
};

}  // namespace autodl::store_detail
