// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What is answered: instances, runs, bills, events, cards.
#include <fmt/format.h>

#include <algorithm>

#include "control/detail/core_state.hpp"

namespace autodl {

InstanceView ControlCore::State::view(const InstanceRow& instance) const {
  InstanceView out;
  out.row = instance;
  const NodeLive* node = node_of(instance);
  out.reachable = node != nullptr && node->reachable;
  out.currency = config.currency;
  out.ssh_host = config.public_host;
  out.price_micro_per_hour = price_of(instance);
  out.notice = notice_of(instance);
  const ObservedInstance* seen = observed_of(instance);
  if (seen != nullptr && !instance.image_ready && seen->image == ImageState::kPulling) {
    out.progress = ProgressView{"pulling the image", seen->image_percent};
  } else if (instance.image_ready && !instance.disk_ready) {
    out.progress = ProgressView{"making the disk", std::nullopt};
  }
  const auto run = runs.find(instance.run);
  if (run == runs.end()) return out;
  out.run = run->second;
  const std::int64_t used = estimate_ms(run->second);
  out.runtime_s = used / 1'000;
  out.cost_micro = cost(run->second, used);
  out.price_micro_per_hour = run->second.price_micro;
  if (run->second.state == RunState::kQueued) {
    const auto waits = queue.find(run->first);
    out.queue = waits == queue.end() ? QueueView{1, why_not_ready(run->second)}
                                     : QueueView{waits->second.position, waits->second.reason};
  }
  if (run->second.state == RunState::kRunning || run->second.state == RunState::kStarting) {
    const std::int64_t rule = max_runtime_ms(run->second);
    const std::int64_t money =
        run->second.settled_micro + run->second.hold_micro +
        std::min(reach(run->second), std::max<std::int64_t>(room(instance.account), 0));
    const std::int64_t paid = paid_ms(run->second.price_micro, run->second.gpu_count, money);
    if (rule > 0 && rule <= paid) {
      out.next_rule = NextRuleView{"max_runtime", std::max<std::int64_t>(rule - used, 0) / 1'000};
    } else if (paid < kPaidForever) {
      out.next_rule = NextRuleView{"balance", std::max<std::int64_t>(paid - used, 0) / 1'000};
    }
  }
  return out;
}

BillRun ControlCore::State::bill_run(const RunRow& run) const {
  BillRun out;
  out.row = run;
  out.settled_micro = run.settled_micro;
  if (run.state != RunState::kEnded) {
    const std::int64_t used = estimate_ms(run);
    out.ms = billed_ms(run, used);
    if (out.ms > 0) {
      const UtcTime from = run.ready_at.value_or(now());
      out.intervals.push_back({from, from + Millis(out.ms), out.ms, true, ""});
    }
  } else if (const auto found = intervals.find(run.id); found != intervals.end()) {
    for (const auto& row : found->second) {
      out.intervals.push_back(
          {row.from, row.from + Millis(row.ms), row.ms, row.billed, row.reason});
      if (row.billed) out.ms += row.ms;
    }
  }
  out.seconds = out.ms / 1'000;
  out.amount_micro = charge_micro(run.price_micro, run.gpu_count, out.ms);
  return out;
}

std::vector<LedgerEntry> ControlCore::State::entries_of(const InstanceRow& instance) const {
  std::vector<LedgerEntry> out;
  const auto page = store.entries(instance.account, instance.id, 0, 10'000);
  if (page.ok()) out = *page;
  for (const auto& entry : batch.entries) {
    if (entry.instance == instance.id) out.push_back(entry);
  }
  return out;
}

Bill ControlCore::State::bill(const InstanceRow& instance, std::vector<LedgerEntry> entries) const {
  Bill out;
  out.instance = instance.id;
  out.name = instance.name;
  out.currency = config.currency;
  out.storage_micro = instance.storage_charged_micro;
  out.total_micro = out.settled_micro = instance.storage_charged_micro;
  if (const auto found = runs_of.find(instance.id); found != runs_of.end()) {
    for (const auto& id : found->second) {
      out.runs.push_back(bill_run(runs.at(id)));
      out.total_micro += out.runs.back().amount_micro;
      out.settled_micro += out.runs.back().settled_micro;
    }
  }
  out.entries = std::move(entries);
  return out;
}

Result<InstanceView> ControlCore::instance(const AccountId& account, std::string_view key) const {
  ADL_TRY(id, state_->find(account, key));
  return state_->view(state_->instances.at(id));
}

Result<InstancePage> ControlCore::instances(const AccountId& account,
                                            std::optional<InstanceState> state, std::size_t limit,
                                            std::string_view cursor) const {
  InstancePage page;
  limit = std::clamp<std::size_t>(limit, 1, 200);
  const auto& all = state_->instances;
  auto at = cursor.empty() ? all.end() : all.lower_bound(InstanceId(std::string(cursor)));
  while (at != all.begin()) {
    --at;
    const InstanceRow& row = at->second;
    if (row.account != account) continue;
    if (state ? row.state != *state : row.state == InstanceState::kReleased) continue;
    if (page.items.size() == limit) {
      page.next = page.items.back().row.id.str();
      break;
    }
    page.items.push_back(state_->view(row));
  }
  return page;
}

Result<std::vector<RunView>> ControlCore::runs(const AccountId& account,
                                               std::string_view key) const {
  ADL_TRY(id, state_->find(account, key));
  std::vector<RunView> out;
  if (const auto found = state_->runs_of.find(id); found != state_->runs_of.end()) {
    for (const auto& run_id : found->second) {
      const RunRow& run = state_->runs.at(run_id);
      const std::int64_t used = state_->estimate_ms(run);
      out.push_back({run, used / 1'000, state_->cost(run, used)});
    }
  }
  return out;
}

Result<Bill> ControlCore::bill(const AccountId& account, std::string_view key) const {
  ADL_TRY(id, state_->find(account, key));
  const InstanceRow& instance = state_->instances.at(id);
  return state_->bill(instance, state_->entries_of(instance));
}

Result<AccountBill> ControlCore::account_bill(const AccountId& account, std::optional<UtcTime> from,
                                              std::optional<UtcTime> to) const {
  AccountBill out;
  out.currency = state_->config.currency;
  for (const auto& [id, row] : state_->instances) {
    if (row.account != account) continue;
    Bill bill = state_->bill(row, {});
    std::erase_if(bill.runs, [&](const BillRun& run) {
      return (from && run.row.ended_at && *run.row.ended_at < *from) ||
             (to && run.row.requested_at >= *to);
    });
    if ((from || to) && bill.runs.empty()) continue;
    bill.total_micro = bill.settled_micro = bill.storage_micro;
    for (const auto& run : bill.runs) {
      bill.total_micro += run.amount_micro;
      bill.settled_micro += run.settled_micro;
    }
    out.total_micro += bill.total_micro;
    out.items.push_back(std::move(bill));
  }
  return out;
}

Result<StatementPage> ControlCore::statement(const AccountId& account, std::string_view instance,
                                             EntryFilter filter) const {
  filter.account = account;
  if (!instance.empty()) {
    ADL_TRY(id, state_->find(account, instance));
    filter.instance = id;
    filter.account = state_->instances.at(id).account;
  }
  filter.limit = std::clamp<std::size_t>(filter.limit, 1, 1'000);
  const std::size_t limit = filter.limit++;
  StatementPage page;
  page.currency = state_->config.currency;
  ADL_TRY(items, state_->store.statement(filter));
  if (items.size() > limit) {
    items.pop_back();
    page.next = items.back().seq;
  }
  for (const auto& entry : items) {
    const auto found = state_->instances.find(entry.instance);
    if (found != state_->instances.end()) page.names[entry.instance] = found->second.name;
  }
  page.items = std::move(items);
  return page;
}

Result<EventPage> ControlCore::events(const AccountId& account, std::string_view key,
                                      std::int64_t after, std::size_t limit) const {
  limit = std::clamp<std::size_t>(limit, 1, 1'000);
  InstanceId instance;
  AccountId owner = account;
  if (!key.empty()) {
    ADL_TRY(id, state_->find(account, key));
    instance = id;
    owner = state_->instances.at(id).account;
  }
  ADL_TRY(items, state_->store.events(owner, instance, after, limit + 1));
  EventPage page;
  if (items.size() > limit) {
    items.pop_back();
    page.next = items.back().seq;
  }
  page.items = std::move(items);
  return page;
}

std::vector<GpuTypeView> ControlCore::gpu_types() const {
  std::map<std::string, GpuTypeView> types;
  for (const auto& group : state_->free_cards()) {
    types[group.gpu_type].free += static_cast<std::int64_t>(group.cards.size());
  }
  for (const auto& [id, node] : state_->nodes) {
    for (const auto& card : node.observed.cards) {
      GpuTypeView& type = types[card.type];
      ++type.total;
      type.memory_bytes = card.memory_bytes;
      type.simulated = node.observed.simulated_cards;
    }
  }
  std::vector<GpuTypeView> out;
  for (auto& [name, type] : types) {
    type.name = name;
    type.price_micro_per_hour = state_->price_now(name).value_or(0);
    type.currency = state_->config.currency;
    out.push_back(type);
  }
  return out;
}

std::vector<ImageView> ControlCore::images() const {
  std::map<std::string, const ObservedImage*> present;
  for (const auto& [id, node] : state_->nodes) {
    for (const auto& image : node.observed.images) present[image.reference] = &image;
  }
  std::vector<ImageView> out;
  const auto fill = [&](ImageView& view, const std::string& reference) {
    const auto found = present.find(reference);
    view.present = found != present.end();
    if (!view.present) return;
    view.digest = found->second->digest;
    view.size_bytes = found->second->size_bytes;
    present.erase(found);
  };
  for (const auto& entry : state_->catalogue.entries()) {
    ImageView view{entry.name, entry.aliases, entry.description, {}, {}, false};
    fill(view, entry.reference);
    out.push_back(std::move(view));
  }
  while (!present.empty()) {
    ImageView view;
    view.name = present.begin()->first;
    fill(view, view.name);
    out.push_back(std::move(view));
  }
  return out;
}

std::optional<ObservedCard> ControlCore::card(const CardId& id) const {
  for (const auto& [node_id, node] : state_->nodes) {
    for (const auto& card : node.observed.cards) {
      if (card.id == id) return card;
    }
  }
  return std::nullopt;
}

std::vector<EndpointView> ControlCore::endpoints() const {
  std::vector<EndpointView> out;
  for (const auto& [id, row] : state_->instances) {
    if (row.port == 0) continue;
    const NodeLive* node = state_->node_of(row);
    out.push_back({row.port, id, row.name, row.state, row.run, node != nullptr && node->reachable});
  }
  return out;
}

}  // namespace autodl
