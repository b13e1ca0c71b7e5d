// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// ControlCore: the whole of control's logic as a synchronous, deterministic state machine.
//
// Owner and thread: one thread owns it and calls it (core_runner); it never blocks but in flush(),
// knows no socket and no coroutine, and takes clock, randomness and store as interfaces, so that
// the simulation links this very code.
//
// Durability: a command changes memory and adds to the pending batch; flush() commits the batch in
// one transaction. An answer (or a desired set) may leave the process only after the flush that
// follows it. Where flush() fails the process must end and load again: memory is then ahead of the
// store. Whatever a command's Error says, nothing was changed by it.
//
//     lock-free by ownership:   command, command, on_observed, tick … -> flush() -> answers, sets
//
// Who may see what: calls take the caller's AccountId; an operator sees every account's instances
// (by id), a user only his own; others' are kNotFound, as if they did not exist.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/random.hpp"
#include "base/result.hpp"
#include "control/catalogue.hpp"
#include "control/views.hpp"
#include "model/desired.hpp"
#include "model/observed.hpp"
#include "model/requests.hpp"
#include "model/rows.hpp"
#include "store/secret_box.hpp"
#include "store/store.hpp"

namespace autodl {

struct CoreConfig {
  NodeId node{"local"};  // home of new instances
  std::string public_host = "127.0.0.1";
  std::int64_t port_first = 20'000;
  std::int64_t port_last = 20'999;
  std::string currency = "CNY";
  std::map<std::string, std::int64_t> prices_micro;  // card type -> per card-hour
  std::int64_t no_card_micro_per_hour = 0;
  std::int64_t storage_micro_per_gb_day = 0;  // GB = 2^30 bytes
  Millis contact_grace{std::chrono::hours{24}};
  Millis start_limit{std::chrono::seconds{60}};
  Millis node_silence{std::chrono::seconds{15}};  // then reachable = false
  std::int64_t stop_grace_ms = 10'000;
};

struct RequestContext {
  std::string request_id;
  Actor actor = Actor::kUser;
  AccountId caller = {};  // for the audit; empty: the one with the setup token
};

class ControlCore {
 public:
  // Loads everything from the store. The collaborators outlive the core.
  static Result<std::unique_ptr<ControlCore>> open(CoreConfig config, Store& store,
                                                   const Clock& clock, Random& random,
                                                   const ImageCatalogue& catalogue,
                                                   const SecretBox& secrets);
  ~ControlCore();

  // ---- durability
  bool dirty() const;  // whether flush() has something to commit
  Status flush();
  // The highest event number committed: SSE waiters ask events() again when it grew.
  std::int64_t committed_seq() const;

  // ---- sign-in
  bool has_operator() const;  // false: POST /setup is open
  Result<NewAccount> create_account(const RequestContext& context, std::string_view name, Role role,
                                    const AccountStart& start = {});
  Result<AccountId> account_of_token(std::string_view token) const;   // kDenied bad_token
  Result<SigningKey> signing_key(std::string_view key_id) const;      // kDenied unknown_key
  Status use_nonce(std::string_view key_id, std::string_view nonce);  // kDenied replayed
  Result<AccountView> account(const AccountId& account) const;
  std::vector<AccountView> accounts() const;
  // amount_micro may be negative (a correction), never below what is available.
  Result<AccountView> credit(const RequestContext& context, const AccountId& account,
                             std::int64_t amount_micro, std::string_view reason);

  // ---- money that operators give, take and bound
  // Pays before cash until expires_at. account: an id or a name.
  Result<VoucherView> give_voucher(const RequestContext& context, std::string_view account,
                                   std::int64_t amount_micro, UtcTime expires_at,
                                   std::string_view reason);
  std::vector<VoucherView> vouchers(const AccountId& account) const;  // empty: everybody's
  // item: a card type, kNoCardItem or kStorageItem; from: now where it is not given. Runs that were
  // accepted before keep their price.
  Result<PriceView> set_price(const RequestContext& context, std::string_view item,
                              std::int64_t price_micro, std::optional<UtcTime> from,
                              std::string_view reason);
  std::vector<PriceView> prices() const;
  // group: an id or a name. No budget: no limit.
  Result<GroupView> add_group(const RequestContext& context, std::string_view name,
                              std::optional<std::int64_t> budget_micro);
  Result<GroupView> set_budget(const RequestContext& context, std::string_view group,
                               std::optional<std::int64_t> budget_micro);
  Result<GroupView> set_member(const RequestContext& context, std::string_view group,
                               std::string_view account, bool member);
  std::vector<GroupView> groups() const;
  Result<GroupView> group(std::string_view key) const;

  // ---- operators. Each change is written to the audit in its own transaction.
  Result<AccountId> account_named(std::string_view key) const;  // an id or a name
  // A disabled account can't sign in or start anything; what waits is cancelled, what runs is told
  // and stopped after stop_after. Enabled again before that, it goes on. An operator can't disable
  // himself: so there is always one.
  Result<AccountView> disable_account(const RequestContext& context, const AccountId& account,
                                      Millis stop_after, std::string_view reason);
  Result<AccountView> enable_account(const RequestContext& context, const AccountId& account,
                                     std::string_view reason);
  Result<AccountView> set_quota(const RequestContext& context, const AccountId& account,
                                const Quota& quota, std::string_view reason);
  Result<GroupView> set_group_quota(const RequestContext& context, std::string_view group,
                                    const Quota& quota, std::string_view reason);
  // Writes that a backup is made; its new id.
  Result<std::string> note_backup(const RequestContext& context);
  // Newest first.
  Result<std::vector<AuditRow>> audit(const AuditFilter& filter) const;
  Result<NodeView> drain_node(const RequestContext& context, const NodeId& node,
                              std::optional<UtcTime> until, std::string_view reason);
  Result<NodeView> resume_node(const RequestContext& context, const NodeId& node,
                               std::string_view reason);
  Result<CardView> cordon_card(const RequestContext& context, const CardId& card, bool cordoned,
                               std::string_view reason);
  Result<std::vector<CardFact>> card_history(const CardId& card, std::optional<std::int64_t> before,
                                             std::size_t limit) const;
  std::vector<ImageAliasRow> image_aliases() const;
  // reference empty: takes the alias away.
  Result<ImageAliasRow> set_image_alias(const RequestContext& context, std::string_view alias,
                                        std::string_view reference, std::string_view reason);

  // ---- idempotency: look up first, then do the work, then remember, all before one flush
  // The first answer under this key; none: new; kConflict idempotency_mismatch: another request.
  Result<std::optional<IdempotencyRow>> find_answer(const AccountId& account, std::string_view key,
                                                    std::string_view request_hash) const;
  void remember_answer(const AccountId& account, std::string_view key,
                       std::string_view request_hash, std::int64_t status, std::string body);

  // ---- ssh keys of an account (used by instances that are started later and running ones)
  Result<SshKeyRow> add_ssh_key(const RequestContext& context, const AccountId& account,
                                std::string_view name, std::string_view public_key);
  std::vector<SshKeyRow> ssh_keys(const AccountId& account) const;
  Status remove_ssh_key(const RequestContext& context, const AccountId& account,
                        std::string_view id);

  // ---- instances
  Result<InstanceView> create_instance(const RequestContext& context, const AccountId& account,
                                       const CreateRequest& request);
  // For the problem of a refused create: near card types or images (codes unknown_card,
  // unknown_image); else nothing.
  std::vector<std::string> candidates(std::string_view code, const CreateRequest& request) const;
  // key: an id, or a name of the caller's.
  Result<InstanceView> start(const RequestContext& context, const AccountId& account,
                             std::string_view key);
  Result<InstanceView> stop(const RequestContext& context, const AccountId& account,
                            std::string_view key);
  Result<InstanceView> release(const RequestContext& context, const AccountId& account,
                               std::string_view key);
  Result<InstanceView> instance(const AccountId& account, std::string_view key) const;
  // Newest first; released ones only where state asks for them. cursor: the last id seen.
  Result<InstancePage> instances(const AccountId& account, std::optional<InstanceState> state,
                                 std::size_t limit, std::string_view cursor) const;
  Result<std::vector<RunView>> runs(const AccountId& account, std::string_view key) const;
  Result<Bill> bill(const AccountId& account, std::string_view key) const;
  Result<AccountBill> account_bill(const AccountId& account, std::optional<UtcTime> from,
                                   std::optional<UtcTime> to) const;
  // What moved the account's money, ascending; filter.account is set here. instance: an id or a
  // name, or empty.
  Result<StatementPage> statement(const AccountId& account, std::string_view instance,
                                  EntryFilter filter) const;
  // key: an instance's; empty: all of the account's. Committed events with seq > after.
  Result<EventPage> events(const AccountId& account, std::string_view key, std::int64_t after,
                           std::size_t limit) const;
  // A fact from elsewhere ("uploaded", "warning"); data_json is a JSON object.
  Status note(const RequestContext& context, const AccountId& account, std::string_view key,
              std::string_view type, std::string_view data_json, std::string_view message);

  // ---- catalogue
  std::vector<GpuTypeView> gpu_types() const;
  std::vector<ImageView> images() const;
  std::vector<NodeView> nodes() const;
  std::vector<CardView> cards() const;
  std::optional<ObservedCard> card(const CardId& id) const;  // as last seen; for the monitor

  // ---- the node's side
  // What the node sees; also the sign that it lives. Duplicates and old sets do no harm.
  void on_observed(const ObservedSet& observed);
  // A line of the node's for an instance's events (frame 4): only "progress" and "warning".
  void on_node_event(const NodeId& node, const InstanceId& instance, std::string_view type,
                     std::string_view message);
  void on_node_lost(const NodeId& node);  // the link broke
  // The node's whole desired set, with leases as of now; none until the node was heard in this
  // process (only then is known how long each run has been running). Send it after a flush, when
  // desired_revision() grew and every 2 s.
  std::optional<DesiredSet> desired_set(const NodeId& node);
  std::uint64_t desired_revision() const;
  // Time passes: queue, limits, rules, settlement, renewal of leases, silence. Every 200 ms or so.
  void tick();
  bool node_reachable(const NodeId& node) const;

  // ---- the gateway's snapshot
  std::vector<EndpointView> endpoints() const;

  // Checks every invariant of memory (money adds up, no card twice, …); kInternal names the first
  // that fails. Also run by the core itself after each flush in debug and simulation.
  Status check_invariants() const;

 private:
  struct State;
  explicit ControlCore(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace autodl
