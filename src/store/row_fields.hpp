// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Each row's table, key and columns, named once: the SQL is made from them, and rows are written
// and read by walking the same list. `field` is called as field("column", row.member).
#pragma once

#include "ledger/ledger.hpp"
#include "model/rows.hpp"

namespace autodl::store_detail {

template <class Row>
struct Table;

#define ADL_TABLE(Row, table, key, append)                  \
  template <>                                               \
  struct Table<Row> {                                       \
    static constexpr const char* kName = table;             \
    static constexpr const char* kKey = key;                \
    static constexpr bool kAppend = append; /* no upsert */ \
  };
ADL_TABLE(AccountRow, "accounts", "id", false)
ADL_TABLE(InstanceRow, "instances", "id", false)
ADL_TABLE(RunRow, "runs", "id", false)
ADL_TABLE(TokenRow, "tokens", "hash", false)
ADL_TABLE(AccessKeyRow, "access_keys", "key_id", false)
ADL_TABLE(SshKeyRow, "ssh_keys", "id", false)
ADL_TABLE(BalanceRow, "ledger_balances", "account, book, run, voucher", false)
ADL_TABLE(IdempotencyRow, "idempotency", "account, key", false)
ADL_TABLE(NonceRow, "nonces", "key_id, nonce", true)
ADL_TABLE(Event, "events", "seq", true)
ADL_TABLE(LedgerEntry, "ledger_entries", "seq", true)
ADL_TABLE(IntervalRow, "intervals", "run, number", true)
ADL_TABLE(PriceRow, "prices", "number", true)
ADL_TABLE(VoucherRow, "vouchers", "id", false)
ADL_TABLE(GroupRow, "account_groups", "id", false)
ADL_TABLE(AuditRow, "audit", "seq", true)
ADL_TABLE(CardFact, "card_facts", "seq", true)
ADL_TABLE(NodeRow, "nodes", "id", false)
ADL_TABLE(CardRow, "cards", "id", false)
ADL_TABLE(ImageAliasRow, "image_aliases", "alias", false)
#undef ADL_TABLE

void walk(auto& field, auto& r, const AccountRow*) {
  field("id", r.id);
  field("name", r.name);
  field("role", r.role);
  field("created_at", r.created_at);
  field("names_given", r.names_given);
  field("group_id", r.group);
  field("disabled", r.disabled);
  field("stop_runs_at", r.stop_runs_at);
  field("cards_max", r.cards_max);
  field("instances_max", r.instances_max);
}
void walk(auto& field, auto& r, const InstanceRow*) {
  field("id", r.id);
  field("account", r.account);
  field("node", r.node);
  field("name", r.name);
  field("state", r.state);
  field("reason", r.reason);
  field("remedy", r.remedy);
  field("image", r.image);
  field("image_resolved", r.image_resolved);
  field("image_digest", r.image_digest);
  field("substituted", r.substituted);
  field("gpu_type", r.gpu_type);
  field("gpu_count", r.gpu_count);
  field("disk_bytes", r.disk_bytes);
  field("command", r.command);
  field("env", r.env);
  field("workdir", r.workdir);
  field("restart", r.restart);
  field("max_runtime_s", r.max_runtime_s);
  field("ssh_keys", r.ssh_keys);
  field("slot", r.slot);
  field("port", r.port);
  field("host_key", r.host_key);
  field("image_ready", r.image_ready);
  field("disk_ready", r.disk_ready);
  field("release_asked", r.release_asked);
  field("run", r.run);
  field("run_count", r.run_count);
  field("created_at", r.created_at);
  field("storage_ms", r.storage_ms);
  field("storage_charged_micro", r.storage_charged_micro);
  field("storage_before_micro", r.storage_before_micro);
  field("storage_piece_ms", r.storage_piece_ms);
  field("storage_price_micro", r.storage_price_micro);
}
void walk(auto& field, auto& r, const RunRow*) {
  field("id", r.id);
  field("instance", r.instance);
  field("account", r.account);
  field("attempt", r.attempt);
  field("state", r.state);
  field("outcome", r.outcome);
  field("exit_code", r.exit_code);
  field("signal", r.signal);
  field("reason", r.reason);
  field("remedy", r.remedy);
  field("gpu_type", r.gpu_type);
  field("gpu_count", r.gpu_count);
  field("cards", r.cards);
  field("price_micro", r.price_micro);
  field("requested_at", r.requested_at);
  field("granted_at", r.granted_at);
  field("ready_at", r.ready_at);
  field("ended_at", r.ended_at);
  field("running_ms", r.running_ms);
  field("hold_micro", r.hold_micro);
  field("lease_micro", r.lease_micro);
  field("settled_micro", r.settled_micro);
  field("warned", r.warned);
  field("stop", r.stop);
  field("stop_at_ms", r.stop_at_ms);
  field("start_timed_out", r.start_timed_out);
}
void walk(auto& field, auto& r, const TokenRow*) {
  field("hash", r.hash);
  field("account", r.account);
  field("created_at", r.created_at);
}
void walk(auto& field, auto& r, const AccessKeyRow*) {
  field("key_id", r.key_id);
  field("account", r.account);
  field("sealed", r.sealed);
  field("created_at", r.created_at);
}
void walk(auto& field, auto& r, const SshKeyRow*) {
  field("id", r.id);
  field("account", r.account);
  field("name", r.name);
  field("public_key", r.public_key);
  field("created_at", r.created_at);
  field("removed", r.removed);
}
void walk(auto& field, auto& r, const BalanceRow*) {
  field("account", r.account);
  field("book", r.book);
  field("run", r.run);
  field("voucher", r.voucher);
  field("amount_micro", r.amount_micro);
}
void walk(auto& field, auto& r, const IdempotencyRow*) {
  field("account", r.account);
  field("key", r.key);
  field("request_hash", r.request_hash);
  field("status", r.status);
  field("body", r.body);
  field("at", r.at);
}
void walk(auto& field, auto& r, const NonceRow*) {
  field("key_id", r.key_id);
  field("nonce", r.nonce);
  field("at", r.at);
}
void walk(auto& field, auto& r, const Event*) {
  field("seq", r.seq);
  field("at", r.at);
  field("type", r.type);
  field("account", r.account);
  field("instance", r.instance);
  field("run", r.run);
  field("actor", r.actor);
  field("data", r.data);
  field("message", r.message);
  field("request_id", r.request_id);
}
void walk(auto& field, auto& r, const LedgerEntry*) {
  field("seq", r.seq);
  field("at", r.at);
  field("account", r.account);
  field("instance", r.instance);
  field("run", r.run);
  field("kind", r.kind);
  field("from_book", r.from);
  field("to_book", r.to);
  field("voucher", r.voucher);
  field("amount_micro", r.amount_micro);
  field("reason", r.reason);
}
void walk(auto& field, auto& r, const IntervalRow*) {
  field("run", r.run);
  field("number", r.number);
  field("from_utc", r.from);
  field("ms", r.ms);
  field("billed", r.billed);
  field("reason", r.reason);
}

void walk(auto& field, auto& r, const PriceRow*) {
  field("item", r.item);
  field("number", r.number);
  field("from_utc", r.from);
  field("price_micro", r.price_micro);
  field("set_at", r.set_at);
  field("set_by", r.set_by);
  field("reason", r.reason);
}
void walk(auto& field, auto& r, const VoucherRow*) {
  field("id", r.id);
  field("account", r.account);
  field("amount_micro", r.amount_micro);
  field("created_at", r.created_at);
  field("expires_at", r.expires_at);
  field("given_by", r.given_by);
  field("reason", r.reason);
}
void walk(auto& field, auto& r, const GroupRow*) {
  field("id", r.id);
  field("name", r.name);
  field("budget_micro", r.budget_micro);
  field("spent_micro", r.spent_micro);
  field("created_at", r.created_at);
  field("cards_max", r.cards_max);
  field("instances_max", r.instances_max);
}
void walk(auto& field, auto& r, const AuditRow*) {
  field("seq", r.seq);
  field("at", r.at);
  field("actor", r.actor);
  field("actor_name", r.actor_name);
  field("action", r.action);
  field("target", r.target);
  field("before", r.before);
  field("after", r.after);
  field("reason", r.reason);
  field("request_id", r.request_id);
}
void walk(auto& field, auto& r, const CardFact*) {
  field("seq", r.seq);
  field("at", r.at);
  field("what", r.what);
  field("card", r.card);
  field("node", r.node);
  field("type", r.type);
  field("account", r.account);
  field("instance", r.instance);
  field("run", r.run);
  field("detail", r.detail);
}
void walk(auto& field, auto& r, const NodeRow*) {
  field("id", r.id);
  field("draining", r.draining);
  field("drain_until", r.drain_until);
  field("reason", r.reason);
  field("changed_at", r.changed_at);
}
void walk(auto& field, auto& r, const CardRow*) {
  field("id", r.id);
  field("cordoned", r.cordoned);
  field("reason", r.reason);
  field("quarantine", r.quarantine);
  field("changed_at", r.changed_at);
}
void walk(auto& field, auto& r, const ImageAliasRow*) {
  field("alias", r.alias);
  field("reference", r.reference);
  field("changed_at", r.changed_at);
}

// ---- words of the enums that stand in columns

inline bool take_word(auto& out, const auto& parsed) {
  if (!parsed) return false;
  out = *parsed;
  return true;
}
inline bool from_word(std::string_view t, Role& o) {
  return take_word(o, parse_role(t));
}
inline bool from_word(std::string_view t, Actor& o) {
  return take_word(o, parse_actor(t));
}
inline bool from_word(std::string_view t, Book& o) {
  return take_word(o, parse_book(t));
}
inline bool from_word(std::string_view t, Outcome& o) {
  return take_word(o, parse_outcome(t));
}
inline bool from_word(std::string_view t, StopBy& o) {
  return take_word(o, parse_stop_by(t));
}
inline bool from_word(std::string_view t, RunState& o) {
  return take_word(o, parse_run_state(t));
}
inline bool from_word(std::string_view t, EntryKind& o) {
  return take_word(o, parse_entry_kind(t));
}
inline bool from_word(std::string_view t, InstanceState& o) {
  return take_word(o, parse_instance_state(t));
}
inline bool from_word(std::string_view t, RestartPolicy& o) {
  return take_word(o, parse_restart_policy(t));
}

}  // namespace autodl::store_detail
