// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Loading, committing, and the public face of ControlCore.
#include "control/core.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "base/log.hpp"
#include "control/detail/core_state.hpp"

namespace autodl {

std::string json_object(
    std::initializer_list<std::pair<std::string_view, std::string_view>> texts) {
  boost::json::object object;
  for (const auto& [name, text] : texts) object[name] = text;
  return boost::json::serialize(object);
}

ControlCore::ControlCore(std::unique_ptr<State> state) : state_(std::move(state)) {}
ControlCore::~ControlCore() = default;

Result<std::unique_ptr<ControlCore>> ControlCore::open(CoreConfig config, Store& store,
                                                       const Clock& clock, Random& random,
                                                       const ImageCatalogue& catalogue,
                                                       const SecretBox& secrets) {
  auto state = std::make_unique<State>(std::move(config), store, clock, random, catalogue, secrets);
  ADL_TRY_STATUS(state->load());
  return std::unique_ptr<ControlCore>(new ControlCore(std::move(state)));
}

Status ControlCore::State::load() {
  ADL_TRY(snapshot, store.load());
  cluster = snapshot.cluster;
  epoch = snapshot.epoch;
  revision = first_revision = epoch << 32;
  event_seq = committed_seq = snapshot.last_event_seq;
  ADL_TRY(loaded, Ledger::load(snapshot.balances, snapshot.last_entry_seq));
  ledger = std::move(loaded);
  renewed_at = stored_at = steady();
  for (auto& row : snapshot.accounts) accounts[row.id] = row;
  load_money(snapshot);
  for (auto& row : snapshot.instances) {
    if (row.port > 0) ports_used.insert(row.port);
    if (row.slot >= 0) slots_used.insert(row.slot);
    instances[row.id] = row;
  }
  for (auto& row : snapshot.runs) {
    runs_of[row.instance].push_back(row.id);
    if (row.state != RunState::kEnded) {
      active.insert(row.id);
      // The node may hold a lease as long as the last process could have given it.
      RunLive& info = live[row.id];
      info.starting_since = steady();
      info.told_revision = revision;
      const std::int64_t paid =
          paid_ms(row.price_micro, row.gpu_count, covered(row, row.lease_micro));
      info.lease_until = steady() + Millis(std::min(paid, config.contact_grace.count()));
    }
    runs[row.id] = row;
  }
  for (auto& [instance, of_it] : runs_of) {
    std::sort(of_it.begin(), of_it.end(), [&](const RunId& a, const RunId& b) {
      return runs.at(a).attempt < runs.at(b).attempt;
    });
  }
  for (auto& row : snapshot.tokens) tokens[row.hash] = row.account;
  for (auto& row : snapshot.access_keys) {
    ADL_TRY(secret, secrets.open(row.sealed, row.key_id));
    keys[row.key_id] = {row.account, secret};
  }
  for (auto& row : snapshot.ssh_keys) ssh_keys[row.id] = row;
  for (auto& row : snapshot.idempotency) answers[{row.account, row.key}] = row;
  for (auto& row : snapshot.nonces) nonces[{row.key_id, row.nonce}] = row.at;
  for (auto& row : snapshot.intervals) intervals[row.run].push_back(row);
  for (auto& row : snapshot.groups) groups[row.id] = row;
  for (auto& row : snapshot.nodes) node_rows[row.id] = row;
  for (auto& row : snapshot.cards) card_rows[row.id] = row;
  for (auto& row : snapshot.image_aliases) image_aliases[row.alias] = row;
  audit_seq = snapshot.last_audit_seq;
  card_fact_seq = snapshot.last_card_fact_seq;
  return check();
}

void ControlCore::State::load_money(const Snapshot& snapshot) {
  for (const auto& row : snapshot.prices) {
    prices[row.item].push_back(row);
    last_price = std::max(last_price, row.number);
  }
  std::set<VoucherId> held;
  for (const auto& row : snapshot.balances) {
    if (!row.voucher.empty() && row.amount_micro > 0) held.insert(row.voucher);
  }
  std::map<AccountId, std::set<std::pair<UtcTime, VoucherId>>> order;
  for (const auto& row : snapshot.vouchers) {
    vouchers[row.id] = row;
    if (held.contains(row.id)) order[row.account].emplace(row.expires_at, row.id);
  }
  for (const auto& [account, of_it] : order) {
    for (const auto& [at, id] : of_it) vouchers_of[account].push_back(id);
  }
}

bool ControlCore::State::dirty() const {
  return !batch.empty() || !dirty_accounts.empty() || !dirty_instances.empty() ||
         !dirty_runs.empty() || !dirty_balances.empty() || !dirty_groups.empty() ||
         !dirty_nodes.empty() || !dirty_cards.empty();
}

Status ControlCore::State::flush() {
  if (failed) {
    return Error(ErrorKind::kUnavailable, "store_failed",
                 "an earlier commit failed: control must load again");
  }
  if (!dirty()) return {};
  for (const auto& id : dirty_accounts) batch.accounts.push_back(accounts.at(id));
  for (const auto& id : dirty_instances) batch.instances.push_back(instances.at(id));
  for (const auto& id : dirty_runs) batch.runs.push_back(runs.at(id));
  for (const auto& id : dirty_groups) batch.groups.push_back(groups.at(id));
  for (const auto& id : dirty_nodes) batch.nodes.push_back(node_rows.at(id));
  for (const auto& id : dirty_cards) batch.cards.push_back(card_rows.at(id));
  for (const auto& [key, row] : dirty_balances) batch.balances.push_back(row);
  Status done = check();  // never commit what does not add up
  if (done.ok()) done = store.commit(batch);
  if (!done.ok()) {
    failed = true;
    return done.error().context("commit");
  }
  batch = Batch();
  dirty_accounts.clear();
  dirty_instances.clear();
  dirty_runs.clear();
  dirty_groups.clear();
  dirty_nodes.clear();
  dirty_cards.clear();
  dirty_balances.clear();
  committed_seq = event_seq;
  return {};
}

void ControlCore::State::emit(const InstanceRow& instance, const RunId& run, EventDraft draft) {
  Event event;
  event.seq = ++event_seq;
  event.at = now();
  event.type = draft.type;
  event.account = instance.account;
  event.instance = instance.id;
  event.run = run;
  event.actor = draft.actor;
  event.data = std::move(draft.data);
  event.message = std::move(draft.message);
  event.request_id = std::move(draft.request_id);
  batch.events.push_back(std::move(event));
}

Result<InstanceId> ControlCore::State::find(const AccountId& account, std::string_view key) const {
  const auto by_id = instances.find(InstanceId(std::string(key)));
  if (by_id != instances.end() && (by_id->second.account == account || is_operator(account))) {
    return by_id->first;
  }
  const InstanceRow* named = nullptr;
  for (const auto& [id, row] : instances) {
    if (row.account != account || row.name != key) continue;
    const bool gone = row.state == InstanceState::kReleased;
    if (named == nullptr || !gone || named->state == InstanceState::kReleased) named = &row;
  }
  if (named != nullptr) return named->id;
  return Error(ErrorKind::kNotFound, "no_such_instance",
               fmt::format("there is no instance '{}'", key.substr(0, 100)), "see `autodl ps`");
}

bool ControlCore::State::is_operator(const AccountId& account) const {
  const auto found = accounts.find(account);
  return found != accounts.end() && found->second.role == Role::kOperator;
}

RunRow* ControlCore::State::active_run(const InstanceRow& instance) {
  const auto found = runs.find(instance.run);
  if (found == runs.end() || found->second.state == RunState::kEnded) return nullptr;
  return &found->second;
}

const NodeLive* ControlCore::State::node_of(const InstanceRow& instance) const {
  const auto found = nodes.find(instance.node);
  return found == nodes.end() ? nullptr : &found->second;
}

const ObservedInstance* ControlCore::State::observed_of(const InstanceRow& instance) const {
  const NodeLive* node = node_of(instance);
  if (node == nullptr) return nullptr;
  const auto found = node->index.find(instance.id);
  return found == node->index.end() ? nullptr : &node->observed.instances[found->second];
}

const ObservedRun* ControlCore::State::observed_run(const RunRow& run) const {
  const ObservedInstance* seen = observed_of(instances.at(run.instance));
  return seen != nullptr && seen->run && seen->run->id == run.id ? &*seen->run : nullptr;
}

// Money and cards, from the rows alone.
Status ControlCore::State::check() const {
  ADL_TRY_STATUS(ledger.check());
  const auto broken = [](std::string what) {
    return Error(ErrorKind::kInternal, "invariant_broken", std::move(what));
  };
  std::map<std::string, RunId> holders;
  std::map<InstanceId, int> running;
  for (const auto& id : active) {
    const RunRow& run = runs.at(id);
    if (++running[run.instance] > 1) return broken("two active runs of one instance");
    if (run.lease_micro > run.hold_micro) return broken("more leased than held");
    if (ledger.held_for(run.id) != run.hold_micro) return broken("a run's hold differs");
    for (const auto& card : run.cards) {
      if (!holders.emplace(card, run.id).second) {
        return broken(fmt::format("card {} has two holders", card));
      }
    }
  }
  for (const auto& id : dirty_runs) {
    const RunRow& run = runs.at(id);
    if (run.state != RunState::kEnded) continue;
    if (ledger.held_for(id) != 0) return broken("an ended run holds money");
    std::int64_t billed = 0;
    if (const auto facts = intervals.find(id); facts != intervals.end()) {
      for (const auto& row : facts->second) billed += row.billed ? row.ms : 0;
    }
    if (run.settled_micro != charge_micro(run.price_micro, run.gpu_count, billed)) {
      return broken(
          fmt::format("run {}: charged {} for {} ms", id.str(), run.settled_micro, billed));
    }
  }
  return {};
}

// ---- the public face

bool ControlCore::dirty() const {
  return state_->dirty();
}
Status ControlCore::flush() {
  return state_->flush();
}
std::int64_t ControlCore::committed_seq() const {
  return state_->committed_seq;
}
std::uint64_t ControlCore::desired_revision() const {
  return state_->revision;
}
Status ControlCore::check_invariants() const {
  return state_->check();
}
void ControlCore::on_observed(const ObservedSet& observed) {
  state_->take_observed(observed);
}
void ControlCore::tick() {
  state_->tick();
}

void ControlCore::on_node_lost(const NodeId& node) {
  const auto found = state_->nodes.find(node);
  if (found == state_->nodes.end()) return;
  found->second.reachable = false;
  found->second.observed.desired_revision = 0;  // a node that starts anew has taken in nothing yet
}

bool ControlCore::node_reachable(const NodeId& node) const {
  const auto found = state_->nodes.find(node);
  return found != state_->nodes.end() && found->second.reachable;
}

std::optional<DesiredSet> ControlCore::desired_set(const NodeId& node) {
  if (!state_->nodes.contains(node)) return std::nullopt;
  return state_->desired_set(node);
}

void ControlCore::on_node_event(const NodeId& node, const InstanceId& instance,
                                std::string_view type, std::string_view message) {
  const auto found = state_->instances.find(instance);
  if (found == state_->instances.end() || found->second.node != node) return;
  if (type != "warning" && type != "progress") return;  // a node says no more than that
  if (!utf8_length(message) || message.size() > 4'096) return;
  state_->emit(found->second, found->second.run,
               {type == "warning" ? "warning" : "progress", std::string(message)});
}

}  // namespace autodl
