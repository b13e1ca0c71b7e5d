// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "control/api/to_api.hpp"

#include <boost/json/parse.hpp>

namespace autodl {
namespace {

std::optional<std::string> text_or_null(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

std::optional<std::string> time_or_null(const std::optional<UtcTime>& time) {
  return time ? std::optional(to_rfc3339(*time)) : std::nullopt;
}

std::optional<std::string> outcome_of(const RunRow& run) {
  return run.outcome ? std::optional(std::string(to_string(*run.outcome))) : std::nullopt;
}

boost::json::object object_of(const std::string& text) {
  boost::system::error_code error;
  auto value = boost::json::parse(text, error);
  return !error && value.is_object() ? std::move(value.get_object()) : boost::json::object();
}

}  // namespace

api::Instance to_api(const InstanceView& view) {
  const InstanceRow& row = view.row;
  api::Instance out;
  out.id = row.id.str();
  out.name = row.name;
  out.state = std::string(to_string(row.state));
  out.status = std::string(status_word(row.state));
  out.reachable = view.reachable;
  out.reason = row.reason;
  out.remedy = row.remedy;
  out.image = row.image;
  out.image_resolved = row.image_resolved;
  out.image_digest = text_or_null(row.image_digest);
  out.substituted = row.substituted;
  out.gpu_type = text_or_null(row.gpu_type);
  out.gpu_count = row.gpu_count;
  out.disk_bytes = row.disk_bytes;
  out.command = row.command;
  out.env = row.env;
  out.workdir = row.workdir;
  out.restart = std::string(to_string(row.restart));
  out.max_runtime_s = row.max_runtime_s;
  if (row.port > 0) out.ssh = api::SshEndpoint{view.ssh_host, row.port, "root", row.host_key};
  if (view.queue) out.queue = api::QueuePlace{view.queue->position, view.queue->reason};
  if (view.progress) out.progress = api::Progress{view.progress->phase, view.progress->percent};
  if (view.next_rule) out.next_rule = api::NextRule{view.next_rule->kind, view.next_rule->in_s};
  out.runtime_s = view.runtime_s;
  out.cost_micro = view.cost_micro;
  out.price_micro_per_hour = view.price_micro_per_hour;
  out.currency = view.currency;
  out.created_at = to_rfc3339(row.created_at);
  out.notice = text_or_null(view.notice);
  if (view.run) {
    const RunRow& run = *view.run;
    out.run = run.id.str();
    out.outcome = outcome_of(run);
    out.exit_code = run.exit_code;
    out.signal = run.signal;
    if (out.reason.empty()) out.reason = run.reason;
    if (out.remedy.empty()) out.remedy = run.remedy;
    out.started_at = time_or_null(run.ready_at);
    out.ended_at = time_or_null(run.ended_at);
  }
  return out;
}

api::Run to_api(const RunView& view) {
  const RunRow& row = view.row;
  api::Run out;
  out.id = row.id.str();
  out.attempt = row.attempt;
  out.state = std::string(to_string(row.state));
  out.outcome = outcome_of(row);
  out.exit_code = row.exit_code;
  out.signal = row.signal;
  out.reason = row.reason;
  out.gpu_type = text_or_null(row.gpu_type);
  out.cards = row.cards;
  out.price_micro_per_hour = row.price_micro;
  out.requested_at = to_rfc3339(row.requested_at);
  out.started_at = time_or_null(row.ready_at);
  out.ended_at = time_or_null(row.ended_at);
  out.runtime_s = view.runtime_s;
  out.cost_micro = view.cost_micro;
  return out;
}

api::Event to_api(const Event& event) {
  api::Event out;
  out.seq = event.seq;
  out.at = to_rfc3339(event.at);
  out.type = event.type;
  out.instance = text_or_null(event.instance.str());
  out.run = text_or_null(event.run.str());
  out.actor = std::string(to_string(event.actor));
  boost::system::error_code error;
  auto data = boost::json::parse(event.data, error);
  if (!error && data.is_object()) out.data = std::move(data.get_object());
  out.message = event.message;
  out.request_id = event.request_id;
  return out;
}

api::Account to_api(const AccountView& view) {
  api::Account out;
  out.id = view.row.id.str();
  out.name = view.row.name;
  out.role = std::string(to_string(view.row.role));
  out.balance_micro = view.balance_micro;
  out.held_micro = view.held_micro;
  out.available_micro = view.available_micro;
  out.currency = view.currency;
  out.group = text_or_null(view.group);
  out.disabled = view.row.disabled;
  out.stop_runs_at = time_or_null(view.row.stop_runs_at);
  out.cards_held = view.cards_held;
  out.cards_max = view.row.cards_max;
  out.instances = view.instances;
  out.instances_max = view.row.instances_max;
  return out;
}

api::GroupQuota to_api(const GroupView& view) {
  return {view.row.id.str(),  view.row.name,  view.members,          view.cards_held,
          view.row.cards_max, view.instances, view.row.instances_max};
}

api::AuditEntry to_api(const AuditRow& row) {
  return {row.seq,    to_rfc3339(row.at), text_or_null(row.actor.str()), row.actor_name,
          row.action, row.target,         object_of(row.before),         object_of(row.after),
          row.reason, row.request_id};
}

api::CardEvent to_api(const CardFact& fact) {
  return {fact.seq,
          to_rfc3339(fact.at),
          fact.what,
          fact.node.str(),
          fact.type,
          text_or_null(fact.account.str()),
          text_or_null(fact.instance.str()),
          text_or_null(fact.run.str()),
          fact.detail};
}

api::ImageAlias to_api(const ImageAliasRow& row) {
  return {row.alias, row.reference};
}

api::NewAccount to_api(const NewAccount& view) {
  return {to_api(view.account), view.token, view.access_key, view.secret_key};
}

api::Bill to_api(const Bill& bill) {
  api::Bill out;
  out.instance = bill.instance.str();
  out.name = bill.name;
  out.currency = bill.currency;
  out.total_micro = bill.total_micro;
  out.settled_micro = bill.settled_micro;
  for (const auto& run : bill.runs) {
    api::BillRun line;
    line.run = run.row.id.str();
    line.attempt = run.row.attempt;
    line.gpu_type = text_or_null(run.row.gpu_type);
    line.cards = run.row.gpu_count;
    line.price_micro_per_card_hour = run.row.price_micro;
    for (const auto& part : run.intervals)
      line.intervals.push_back(
          {to_rfc3339(part.from), to_rfc3339(part.to), part.ms, part.billed, part.reason});
    line.ms = run.ms;
    line.seconds = run.seconds;
    line.amount_micro = run.amount_micro;
    line.settled_micro = run.settled_micro;
    line.outcome = outcome_of(run.row);
    out.runs.push_back(std::move(line));
  }
  out.storage.amount_micro = bill.storage_micro;
  for (const auto& entry : bill.entries)
    out.entries.push_back({entry.seq, to_rfc3339(entry.at), std::string(to_string(entry.kind)),
                           entry.amount_micro, text_or_null(entry.run.str()), entry.reason});
  return out;
}

api::AccountBill to_api(const AccountBill& bill) {
  return {bill.currency, bill.total_micro, all_to_api(bill.items)};
}

api::GpuType to_api(const GpuTypeView& view) {
  return {view.name,     view.memory_bytes, view.total, view.free, view.price_micro_per_hour,
          view.currency, view.simulated};
}

api::Image to_api(const ImageView& view) {
  return {view.name, view.aliases, view.description, view.digest, view.size_bytes, view.present};
}

api::Node to_api(const NodeView& view) {
  api::Node out;
  out.id = view.id.str();
  out.reachable = view.reachable;
  out.boot_id = view.boot_id;
  out.driver_version = view.driver_version;
  out.simulated_cards = view.simulated_cards;
  out.cards = view.cards;
  for (const auto& id : view.unknown_instances) out.unknown_instances.push_back(id.str());
  out.draining = view.wanted.draining;
  out.drain_until = time_or_null(view.wanted.drain_until);
  out.drain_reason = view.wanted.reason;
  out.running = view.running;
  out.cordoned = view.cordoned;
  return out;
}

api::Card to_api(const CardView& view) {
  api::Card out;
  out.id = view.card.id.str();
  out.node = view.node.str();
  out.type = view.card.type;
  out.model = view.card.model;
  out.memory_bytes = view.card.memory_bytes;
  out.health = view.card.health == CardHealth::kFree   ? "free"
               : view.card.health == CardHealth::kHeld ? "held"
                                                       : "quarantined";
  out.reason = view.card.reason;
  out.instance = text_or_null(view.holder.str());
  out.utilization_percent = view.card.utilization_percent;
  out.temperature_c = view.card.temperature_c;
  out.cordoned = view.wanted.cordoned;
  out.cordon_reason = view.wanted.reason;
  return out;
}

api::SshKey to_api(const SshKeyRow& row) {
  return {row.id, row.name, row.public_key};
}

}  // namespace autodl
