// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The durable rows: what the store keeps and the control core holds in memory. Plain values.
// Money is int64 micro-units (`_micro`), durations milliseconds (`_ms`), times UTC microseconds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "model/states.hpp"

namespace autodl {

enum class Role { kUser, kOperator };
enum class Actor { kUser, kPlatform, kOperator };
enum class RunState { kQueued, kStarting, kRunning, kStopping, kEnded };

struct AccountRow {
  AccountId id;
  std::string name;
  Role role = Role::kUser;
  UtcTime created_at;
  std::int64_t names_given = 0;               // the last of 001, 002, …
  GroupId group;                              // empty: none
  bool disabled = false;                      // may not sign in nor start anything
  std::optional<UtcTime> stop_runs_at;        // of a disabled one: what runs is stopped then
  std::optional<std::int64_t> cards_max;      // held at once over all runs; none: no limit
  std::optional<std::int64_t> instances_max;  // not released ones
  bool operator==(const AccountRow&) const = default;
};

struct InstanceRow {
  InstanceId id;
  AccountId account;
  NodeId node;  // home: the disk is there
  std::string name;
  InstanceState state = InstanceState::kCreated;
  std::string reason;  // why it is so, and what to do, for the user
  std::string remedy;
  std::string image;           // as asked
  std::string image_resolved;  // the reference the node is told
  std::string image_digest;    // pinned once the node told it
  bool substituted = false;
  std::string gpu_type;  // empty: no card
  std::int64_t gpu_count = 0;
  std::int64_t disk_bytes = 0;
  std::optional<std::string> command;
  std::map<std::string, std::string> env;
  std::string workdir;
  RestartPolicy restart = RestartPolicy::kNever;
  std::optional<std::int64_t> max_runtime_s;
  std::vector<std::string> ssh_keys;
  std::int64_t slot = -1;  // user-id range and address; -1: given back
  std::int64_t port = 0;   // SSH endpoint; 0: given back
  std::string host_key;
  bool image_ready = false;
  bool disk_ready = false;
  bool release_asked = false;
  RunId run;  // the current or last one; empty: never started
  std::int64_t run_count = 0;
  UtcTime created_at;
  std::int64_t storage_ms = 0;  // billed life of the disk so far
  std::int64_t storage_charged_micro = 0;
  // Storage is counted in pieces of one price each: what the earlier ones came to, and this one.
  std::int64_t storage_before_micro = 0;
  std::int64_t storage_piece_ms = 0;
  std::int64_t storage_price_micro = -1;  // per GB-day; -1: not counted yet
  bool operator==(const InstanceRow&) const = default;
};

struct RunRow {
  RunId id;
  InstanceId instance;
  AccountId account;
  std::int64_t attempt = 1;
  RunState state = RunState::kQueued;
  std::optional<Outcome> outcome;
  std::optional<std::int64_t> exit_code;
  std::optional<std::int64_t> signal;
  std::string reason;
  std::string remedy;
  std::string gpu_type;
  std::int64_t gpu_count = 0;
  std::vector<std::string> cards;  // allocation; held until state is kEnded
  std::int64_t price_micro = 0;    // per card-hour (per hour without a card), locked at the start
  UtcTime requested_at;
  std::optional<UtcTime> granted_at;
  std::optional<UtcTime> ready_at;  // the node's UTC anchor
  std::optional<UtcTime> ended_at;
  std::int64_t running_ms = 0;     // steady, as the node told; never shrinks
  std::int64_t hold_micro = 0;     // held for it now, unsettled use included
  std::int64_t lease_micro = 0;    // <= hold_micro: what the node may be told is paid
  std::int64_t settled_micro = 0;  // charged so far
  std::int64_t warned = 0;         // low-balance warnings given (1: 24 h, 2: 1 h, 3: 10 min)
  std::optional<StopBy> stop;      // asked
  std::int64_t stop_at_ms = 0;     // running_ms when a stop was asked
  bool start_timed_out = false;
  bool operator==(const RunRow&) const = default;
};

// Facts of use, appended when a run ends; the bill is made from them and the locked price.
struct IntervalRow {
  RunId run;
  std::int64_t number = 0;  // within the run
  UtcTime from;
  std::int64_t ms = 0;  // steady duration
  bool billed = true;
  std::string reason;  // why not billed
  bool operator==(const IntervalRow&) const = default;
};

struct Event {
  std::int64_t seq = 0;  // drawn by the one writer; 1…
  UtcTime at;
  std::string type;
  AccountId account;
  InstanceId instance;
  RunId run;
  Actor actor = Actor::kPlatform;
  std::string data = "{}";  // a JSON object
  std::string message;
  std::string request_id;
  bool operator==(const Event&) const = default;
};

// A price from a time on: the newest `from` that is not in the future counts, and of equal ones the
// highest number. item: a card type, kNoCardItem or kStorageItem.
inline constexpr const char* kNoCardItem = "no-card";          // per hour
inline constexpr const char* kStorageItem = "storage-gb-day";  // GB = 2^30 bytes
struct PriceRow {
  std::string item;
  std::int64_t number = 0;  // 1… over all items
  UtcTime from;
  std::int64_t price_micro = 0;
  UtcTime set_at;
  AccountId set_by;
  std::string reason;
  bool operator==(const PriceRow&) const = default;
};

// Money given for a time: pays before cash, the one that expires soonest first, and never for a
// second after expires_at. What is left of it stands in the ledger.
struct VoucherRow {
  VoucherId id;
  AccountId account;
  std::int64_t amount_micro = 0;
  UtcTime created_at;
  UtcTime expires_at;
  AccountId given_by;
  std::string reason;
  bool operator==(const VoucherRow&) const = default;
};

// A lab, a course: its members' spending counts against one budget.
struct GroupRow {
  GroupId id;
  std::string name;
  std::optional<std::int64_t> budget_micro;  // none: no limit
  std::int64_t spent_micro = 0;              // of its members, while they were members
  UtcTime created_at;
  std::optional<std::int64_t> cards_max;      // of all members together; none: no limit
  std::optional<std::int64_t> instances_max;  // of all members together
  bool operator==(const GroupRow&) const = default;
};

// What an operator (or the platform for one) changed. Appended in the transaction of the change,
// and never altered: the store refuses it.
struct AuditRow {
  std::int64_t seq = 0;  // 1…
  UtcTime at;
  AccountId actor;
  std::string actor_name;     // as it was then
  std::string action;         // "user.disable", "price.set", …
  std::string target;         // what was changed: a name, an id
  std::string before = "{}";  // JSON objects of what the change touched
  std::string after = "{}";
  std::string reason;
  std::string request_id;
  bool operator==(const AuditRow&) const = default;
};

// What the operator wants of a node. A node without a row takes part in everything.
struct NodeRow {
  NodeId id;
  bool draining = false;               // nothing new starts there
  std::optional<UtcTime> drain_until;  // told to those who run there; runs are not ended at it
  std::string reason;
  UtcTime changed_at;
  bool operator==(const NodeRow&) const = default;
};

// What the operator wants of a card.
struct CardRow {
  CardId id;
  bool cordoned = false;  // not granted; a run that holds it goes on
  std::string reason;
  std::string quarantine;  // why the node last said that it can't be lent; empty: it can
  UtcTime changed_at;
  bool operator==(const CardRow&) const = default;
};

// What befell a card: "granted", "freed", "quarantined", "cleared", "cordoned", "uncordoned".
struct CardFact {
  std::int64_t seq = 0;  // 1…
  UtcTime at;
  std::string what;
  CardId card;
  NodeId node;
  std::string type;
  AccountId account;  // of a grant
  InstanceId instance;
  RunId run;
  std::string detail;
  bool operator==(const CardFact&) const = default;
};

// Another name for an image, beside those of the catalogue.
struct ImageAliasRow {
  std::string alias;
  std::string reference;  // a catalogue's name or an OCI reference; empty: taken away
  UtcTime changed_at;
  bool operator==(const ImageAliasRow&) const = default;
};

struct TokenRow {
  std::string hash;  // hex SHA-256 of the token
  AccountId account;
  UtcTime created_at;
  bool operator==(const TokenRow&) const = default;
};

struct AccessKeyRow {
  std::string key_id;  // "AK…"
  AccountId account;
  std::string sealed;  // hex; opened with the master key
  UtcTime created_at;
  bool operator==(const AccessKeyRow&) const = default;
};

struct SshKeyRow {
  std::string id;
  AccountId account;
  std::string name;
  std::string public_key;
  UtcTime created_at;
  bool removed = false;
  bool operator==(const SshKeyRow&) const = default;
};

struct IdempotencyRow {
  AccountId account;
  std::string key;
  std::string request_hash;  // of method, path and body
  std::int64_t status = 0;
  std::string body;
  UtcTime at;
  bool operator==(const IdempotencyRow&) const = default;
};

struct NonceRow {
  std::string key_id;
  std::string nonce;
  UtcTime at;
  bool operator==(const NonceRow&) const = default;
};

std::string_view to_string(Role role);       // "user", "operator"
std::string_view to_string(Actor actor);     // "user", "platform", "operator"
std::string_view to_string(RunState state);  // "queued", "starting", …
std::optional<Role> parse_role(std::string_view text);
std::optional<Actor> parse_actor(std::string_view text);
std::optional<RunState> parse_run_state(std::string_view text);

}  // namespace autodl
