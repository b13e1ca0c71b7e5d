// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What ControlCore holds, and its parts by file: accounts.cpp (sign-in, keys), instances.cpp
// (create, start, stop, release), audit.cpp, quota.cpp, nodes.cpp, cards.cpp (operators), money.cpp
// (holds, leases, settlement), vouchers.cpp (what pays for a run), prices.cpp, groups.cpp
// (budgets), storage.cpp, reconcile.cpp (what nodes see, time, queue), views.cpp (what is
// answered). Everything here runs on the core's one thread.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/core.hpp"
#include "ledger/funding.hpp"
#include "model/decide.hpp"
#include "model/money.hpp"
#include "placement/engine.hpp"

namespace autodl {

// What is known of a node in this process; nothing of it is stored.
struct NodeLive {
  bool reachable = false;
  SteadyTime heard{};
  ObservedSet observed;
  std::map<InstanceId, std::size_t> index;  // into observed.instances
  std::set<InstanceId> unknown;
};

// What is known of an active run in this process.
struct RunLive {
  SteadyTime starting_since{};
  SteadyTime observed_at{};                // when running_ms was told (or: not running yet)
  bool observed_running = false;           // in this process
  std::optional<SteadyTime> absent_since;  // the node says it lacks it
  SteadyTime lease_until{};                // the latest moment at which the node may still run it
  std::uint64_t shrink_revision = 0;       // a shorter lease was told with this set; 0: none
  std::uint64_t told_revision = 0;         // its grant, or later its stop, was told with this set
};

// A run that was given up without the node's word that it is over. A set that grants it may still
// be under way, so its cards and its instance wait until the node has taken in a set without it
// (acknowledged by desired_revision) and does not report it alive.
struct Fence {
  NodeId node;
  InstanceId instance;
  RunId run;
  std::vector<std::string> cards;
  std::uint64_t revision = 0;  // the first set without it
};

struct ControlCore::State {
  State(CoreConfig config_in, Store& store_in, const Clock& clock_in, Random& random_in,
        const ImageCatalogue& catalogue_in, const SecretBox& secrets_in)
      : config(std::move(config_in)),
        store(store_in),
        clock(clock_in),
        random(random_in),
        catalogue(catalogue_in),
        secrets(secrets_in),
        ids(clock_in, random_in) {}

  CoreConfig config;
  Store& store;
  const Clock& clock;
  Random& random;
  const ImageCatalogue& catalogue;
  const SecretBox& secrets;
  UlidGenerator ids;
  LocalPlacement placement;

  // ---- durable, as in the store once flushed
  Ledger ledger;
  std::string cluster;
  std::uint64_t epoch = 0;
  std::map<AccountId, AccountRow> accounts;
  std::map<InstanceId, InstanceRow> instances;
  std::map<RunId, RunRow> runs;
  std::map<InstanceId, std::vector<RunId>> runs_of;  // by attempt
  std::set<RunId> active;                            // all that have not ended
  std::map<std::string, AccountId> tokens;           // by hash
  std::map<std::string, SigningKey> keys;            // by key id, opened
  std::map<std::string, SshKeyRow> ssh_keys;
  std::map<std::pair<AccountId, std::string>, IdempotencyRow> answers;
  std::map<std::pair<std::string, std::string>, UtcTime> nonces;
  std::map<RunId, std::vector<IntervalRow>> intervals;
  std::map<GroupId, GroupRow> groups;
  std::map<NodeId, NodeRow> node_rows;
  std::map<CardId, CardRow> card_rows;
  std::map<std::string, ImageAliasRow> image_aliases;
  std::int64_t audit_seq = 0;
  std::int64_t card_fact_seq = 0;
  std::map<std::string, std::vector<PriceRow>> prices;  // by item, in the order they were set
  std::int64_t last_price = 0;
  std::map<VoucherId, VoucherRow> vouchers;
  std::map<AccountId, std::vector<VoucherId>> vouchers_of;  // with something left or held
  std::int64_t event_seq = 0;
  std::int64_t committed_seq = 0;

  // ---- pending
  Batch batch;
  std::set<AccountId> dirty_accounts;
  std::set<InstanceId> dirty_instances;
  std::set<RunId> dirty_runs;
  std::set<GroupId> dirty_groups;
  std::set<NodeId> dirty_nodes;
  std::set<CardId> dirty_cards;
  std::map<std::string, BalanceRow> dirty_balances;
  bool failed = false;  // a commit failed: nothing may be answered any more

  // ---- of this process
  std::uint64_t revision = 0;  // epoch << 32 | changes: never repeats over restarts
  std::map<NodeId, NodeLive> nodes;
  std::map<RunId, RunLive> live;
  std::uint64_t first_revision = 0;  // of this process: until it is taken in, an older set may be
  std::vector<Fence> fences;
  std::map<RunId, QueueAnswer> queue;  // why each waiting run waits
  SteadyTime renewed_at{};
  SteadyTime stored_at{};  // storage was counted up to here
  std::set<std::int64_t> ports_used;
  std::set<std::int64_t> slots_used;

  // ---- base
  Status load();
  void load_money(const Snapshot& snapshot);
  Status flush();
  bool dirty() const;
  UtcTime now() const { return clock.utc_now(); }
  SteadyTime steady() const { return clock.steady_now(); }
  void touch_desired() { ++revision; }
  InstanceRow& change(InstanceRow& row) {
    dirty_instances.insert(row.id);
    return row;
  }
  RunRow& change(RunRow& row) {
    dirty_runs.insert(row.id);
    return row;
  }
  GroupRow& change(GroupRow& row) {
    dirty_groups.insert(row.id);
    return row;
  }
  struct EventDraft {
    const char* type;
    std::string message;
    std::string data = "{}";
    Actor actor = Actor::kPlatform;
    std::string request_id = {};
  };
  void emit(const InstanceRow& instance, const RunId& run, EventDraft draft);

  // ---- finding
  Result<InstanceId> find(const AccountId& account, std::string_view key) const;
  RunRow* active_run(const InstanceRow& instance);
  const NodeLive* node_of(const InstanceRow& instance) const;
  const ObservedInstance* observed_of(const InstanceRow& instance) const;
  const ObservedRun* observed_run(const RunRow& run) const;
  bool is_operator(const AccountId& account) const;

  // ---- accounts
  Result<NewAccount> create_account(const RequestContext& context, std::string_view name, Role role,
                                    const AccountStart& start);
  AccountView view(const AccountRow& account) const;

  // ---- operators
  struct AuditDraft {
    const char* action;
    std::string target;
    std::string before;  // JSON objects
    std::string after;
    std::string reason;
  };
  void audit(const RequestContext& context, AuditDraft draft);
  GroupId make_group(const RequestContext& context, std::string_view name);
  Result<GroupId> group_named(std::string_view key) const;
  GroupView view(const GroupRow& group) const;
  std::int64_t cards_held(const AccountId& account) const;
  std::int64_t instances_of(const AccountId& account) const;
  Holdings holdings() const;
  Status check_instance_quota(const AccountRow& account) const;
  Status check_card_quota(const AccountRow& account, std::int64_t wanted) const;
  void stop_disabled();
  void take_cards(const ObservedSet& observed);
  void card_fact(const char* what, const NodeId& node, const CardId& card, const RunRow* run,
                 std::string detail = {});
  NodeView view(const NodeId& node) const;
  CardView view(const NodeId& node, const ObservedCard& card) const;
  std::string notice_of(const InstanceRow& instance) const;
  std::string drain_reason(const NodeId& node) const;
  bool cordoned(const CardId& card) const;

  // ---- instances
  Result<InstanceRow> prepare(const AccountId& account, const CreateRequest& request);
  Result<std::string> resolve_card(const CreateRequest& request) const;
  Status resolve_image(const CreateRequest& request, InstanceRow& row) const;
  Result<std::string> pick_name(const AccountRow& account, const CreateRequest& request) const;
  Status lease_endpoint(InstanceRow& row);
  std::vector<std::string> known_card_types() const;
  std::int64_t price_of(const InstanceRow& instance) const;
  Status start(const RequestContext& context, InstanceRow& instance);
  void ask_stop(const RequestContext& context, InstanceRow& instance, StopBy by,
                std::string message);
  void release(const RequestContext& context, InstanceRow& instance);
  void set_state(InstanceRow& instance, InstanceState state, std::string reason = {},
                 std::string remedy = {});

  // ---- money
  void record(const LedgerEntry& entry);
  std::int64_t estimate_ms(const RunRow& run) const;
  std::int64_t most_ms(const RunRow& run) const;
  std::int64_t billed_ms(const RunRow& run, std::int64_t running_ms) const;
  std::int64_t cost(const RunRow& run, std::int64_t running_ms) const;
  std::int64_t hour_price(const RunRow& run) const;
  std::int64_t max_runtime_ms(const RunRow& run) const;
  std::int64_t lease_ms(const RunRow& run) const;
  std::int64_t excess(const RunRow& run) const;
  // Whose runs are meant: an account's, a group's.
  using Among = std::function<bool(const RunRow&)>;
  std::int64_t reclaimable(const Among& among) const;
  std::int64_t coming_back(const Among& among) const;
  void shrink_others(const Among& among, std::int64_t wanted);
  Among of_account(const AccountId& account) const;
  Among of_group_of(const AccountId& account) const;
  Status fund_start(RunRow& run);
  void fund_waiting();
  bool fund_one_waiting(RunRow& run);
  std::int64_t take_hold(RunRow& run, std::int64_t more, std::int64_t goal,
                         std::string_view reason);
  void give_back(RunRow& run, std::int64_t amount, std::string_view reason);
  void settle(RunRow& run, bool final);
  void credit_outage(RunRow& run, std::string_view why);
  void finish_shrinks();
  void renew();
  void renew_account(const AccountId& account, const std::vector<RunRow*>& of_account);
  void warn_low(RunRow& run, std::int64_t share);

  // ---- what pays (vouchers.cpp)
  std::vector<Fund> funds_of(const RunRow& run) const;
  RunTerms terms_of(const RunRow& run) const;
  std::int64_t limit_ms(const RunRow& run, const VoucherRow& voucher) const;
  std::int64_t covered(const RunRow& run, std::int64_t amount) const;
  std::int64_t reach(const RunRow& run) const;
  std::int64_t available(const AccountId& account) const;
  std::vector<VoucherId> usable_vouchers(const AccountId& account) const;
  Result<VoucherRow> give_voucher(const AccountId& account, std::int64_t amount, UtcTime expires_at,
                                  std::string_view reason, const AccountId& by);
  void drop_useless_holds(RunRow& run);
  void expire_vouchers();

  // ---- prices (prices.cpp), budgets (groups.cpp), disks (storage.cpp)
  std::optional<std::int64_t> price_at(const std::string& item, UtcTime at) const;
  std::optional<std::int64_t> price_now(const std::string& item) const {
    return price_at(item, now());
  }
  std::int64_t room(const AccountId& account) const;  // kNoLimit: no budget
  GroupRow* group_of(const AccountId& account);
  void note_spent(const AccountId& account, std::int64_t amount);
  VoucherView view(const VoucherRow& voucher) const;
  Result<AccountId> account_named(std::string_view key) const;
  void count_storage(bool now);
  void count_disk(InstanceRow& instance, std::int64_t elapsed_ms);
  void add_piece(InstanceRow& instance, std::int64_t ms, std::int64_t price);
  void charge_storage(InstanceRow& instance);

  // ---- reconcile
  void take_observed(const ObservedSet& observed);
  void take_instance(InstanceRow& instance, const ObservedInstance& seen);
  void take_run(RunRow& run, const ObservedRun* seen, std::uint64_t taken_in);
  void raise_fence(const RunRow& run);
  void lift_fences(const ObservedSet& observed);
  void step_run(RunRow& run);
  RunTimes times_of(const RunRow& run);
  void become_running(RunRow& run, const ObservedRun& seen);
  void end_run(RunRow& run, const RunResult& result);
  void end_queued(const RequestContext& context, RunRow& run);
  void close_run(RunRow& run);
  void restart_lost(InstanceRow& instance, const RunRow& lost);
  void schedule();
  std::vector<QueueItem> waiting() const;
  std::vector<FreeCards> free_cards() const;
  void grant(RunRow& run, const std::vector<CardId>& cards);
  std::string why_not_ready(const RunRow& run) const;
  void finish_releases();
  void forget_old();
  void tick();
  DesiredSet desired_set(const NodeId& node);
  void add_desired_run(const InstanceRow& instance, DesiredInstance& out);

  // ---- views
  InstanceView view(const InstanceRow& instance) const;
  Bill bill(const InstanceRow& instance, std::vector<LedgerEntry> entries) const;
  BillRun bill_run(const RunRow& run) const;
  std::vector<LedgerEntry> entries_of(const InstanceRow& instance) const;
  Status check() const;
};

// kDenied "account_disabled".
Error disabled_account();
// kInvalid "bad_reason": not one line of at most 1,024 bytes.
Status check_reason(std::string_view reason);
Error no_account();

inline constexpr std::int64_t kNoLimit = std::int64_t{4} * kMicroMax;

std::string json_object(std::initializer_list<std::pair<std::string_view, std::string_view>> texts);

}  // namespace autodl
