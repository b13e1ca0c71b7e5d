// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What ControlCore answers: values for the API's handlers, with everything computed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ledger/ledger.hpp"
#include "model/observed.hpp"
#include "model/rows.hpp"

namespace autodl {

struct AccountView {
  AccountRow row;
  std::int64_t balance_micro = 0;    // available + held
  std::int64_t held_micro = 0;       // for runs
  std::int64_t available_micro = 0;  // free to spend, in cash and in vouchers
  std::int64_t cash_micro = 0;       // of available
  std::string currency;
  std::string group;                       // its name; empty: none
  std::optional<std::int64_t> room_micro;  // of the group's budget, for all members together
  std::int64_t cards_held = 0;
  std::int64_t instances = 0;  // not released ones
};

struct VoucherView {
  VoucherRow row;
  std::string account_name;
  std::int64_t left_micro = 0;  // not held
  std::int64_t held_micro = 0;
  std::string currency;
};

struct PriceView {
  PriceRow row;
  bool set = false;     // by an operator; else it stands in the configuration file
  bool current = true;  // counts now; else it is an earlier or a later one
  std::string currency;
};

struct StatementPage {
  std::vector<LedgerEntry> items;
  std::map<InstanceId, std::string> names;  // of the instances in it
  std::optional<std::int64_t> next;         // pass as `after` for more
  std::string currency;
};

// What a new account begins with. A group that does not exist is made (without a budget).
struct AccountStart {
  std::string group;
  std::int64_t credit_micro = 0;
};

// What is held at once at most. An unset member is left as it is; a negative number takes the limit
// away.
struct Quota {
  std::optional<std::int64_t> cards;
  std::optional<std::int64_t> instances;
};

struct GroupView {
  GroupRow row;
  std::int64_t members = 0;
  std::int64_t cards_held = 0;
  std::int64_t instances = 0;
  std::vector<std::string> names;          // of its members
  std::int64_t held_micro = 0;             // for their runs
  std::optional<std::int64_t> room_micro;  // none: no budget
  std::string currency;
};

struct NewAccount {
  AccountView account;
  std::string token;       // "adl_…", shown once
  std::string access_key;  // "AK…"
  std::string secret_key;  // "adl_sk_…", shown once
};

struct SigningKey {
  AccountId account;
  std::string secret_key;
};

struct QueueView {
  std::int64_t position = 1;
  std::string reason;
};

struct ProgressView {
  std::string phase;  // "pulling the image", "making the disk"
  std::optional<int> percent;
};

struct NextRuleView {
  std::string kind;  // "max_runtime", "balance"
  std::int64_t in_s = 0;
};

struct InstanceView {
  InstanceRow row;
  bool reachable = true;
  std::optional<RunRow> run;  // the current or last one; outcome, exit code, times are its
  std::optional<QueueView> queue;
  std::optional<ProgressView> progress;
  std::int64_t runtime_s = 0;             // of that run, live
  std::int64_t cost_micro = 0;            // of that run, live
  std::int64_t price_micro_per_hour = 0;  // per card (locked of a run; else today's)
  std::string currency;
  std::string ssh_host;  // with row.port and row.host_key
  std::optional<NextRuleView> next_rule;
  std::string notice;  // what the operator has planned with its node or owner; empty: nothing
};

struct InstancePage {
  std::vector<InstanceView> items;
  std::optional<std::string> next;
};

struct RunView {
  RunRow row;
  std::int64_t runtime_s = 0;
  std::int64_t cost_micro = 0;
};

struct BillInterval {
  UtcTime from;
  UtcTime to;
  std::int64_t ms = 0;
  bool billed = true;
  std::string reason;
};

struct BillRun {
  RunRow row;
  std::vector<BillInterval> intervals;
  std::int64_t ms = 0;       // billed
  std::int64_t seconds = 0;  // floor(ms / 1000)
  std::int64_t amount_micro = 0;
  std::int64_t settled_micro = 0;
};

struct Bill {
  InstanceId instance;
  std::string name;
  std::string currency;
  std::int64_t total_micro = 0;
  std::int64_t settled_micro = 0;
  std::vector<BillRun> runs;
  std::int64_t storage_micro = 0;
  std::vector<LedgerEntry> entries;
};

struct AccountBill {
  std::string currency;
  std::int64_t total_micro = 0;
  std::vector<Bill> items;
};

struct EventPage {
  std::vector<Event> items;
  std::optional<std::int64_t> next;  // pass as `after` for more; none: no more for now
};

struct GpuTypeView {
  std::string name;
  std::int64_t memory_bytes = 0;
  std::int64_t total = 0;
  std::int64_t free = 0;
  std::int64_t price_micro_per_hour = 0;
  std::string currency;
  bool simulated = false;
};

struct ImageView {
  std::string name;
  std::vector<std::string> aliases;
  std::string description;
  std::optional<std::string> digest;
  std::optional<std::int64_t> size_bytes;
  bool present = false;
};

struct NodeView {
  NodeId id;
  bool reachable = false;
  std::string boot_id;
  std::string driver_version;
  bool simulated_cards = false;
  std::int64_t cards = 0;
  std::vector<InstanceId> unknown_instances;  // it has them, control does not know them: kept
  NodeRow wanted;                             // draining, until when, why
  std::int64_t running = 0;                   // runs that have a place there
  std::int64_t cordoned = 0;                  // cards
};

struct CardView {
  NodeId node;
  ObservedCard card;
  InstanceId holder;  // by control's rows; empty: nobody
  CardRow wanted;     // cordoned, why
};

// One row of the gateway's table.
struct EndpointView {
  std::int64_t port = 0;
  InstanceId instance;
  std::string name;
  InstanceState state = InstanceState::kCreated;
  RunId run;
  bool reachable = true;
};

}  // namespace autodl
