// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What operators want of nodes: a drained one takes no new run, and those who run there are told.
#include <fmt/format.h>

#include <algorithm>

#include "control/detail/core_state.hpp"

namespace autodl {
namespace {

std::string node_json(const NodeRow& row) {
  return fmt::format(R"({{"draining":{},"until":{}}})", row.draining,
                     row.drain_until ? "\"" + to_rfc3339(*row.drain_until) + "\"" : "null");
}

std::string until_text(const NodeRow& row) {
  return row.drain_until ? " until " + to_rfc3339(*row.drain_until) : std::string();
}

std::string why_text(const NodeRow& row) {
  return row.reason.empty() ? std::string() : ": " + row.reason;
}

Error no_such_node(const NodeId& node) {
  return Error(ErrorKind::kNotFound, "no_such_node",
               fmt::format("there is no node '{}'", node.str().substr(0, 100)),
               "see `autodl admin node list`");
}

}  // namespace

std::string ControlCore::State::drain_reason(const NodeId& node) const {
  const auto found = node_rows.find(node);
  if (found == node_rows.end() || !found->second.draining) return {};
  return fmt::format("the node {} takes no new runs{}{}", node.str(), until_text(found->second),
                     why_text(found->second));
}

std::string ControlCore::State::notice_of(const InstanceRow& instance) const {
  const AccountRow& owner = accounts.at(instance.account);
  const bool runs_now = active.contains(instance.run);
  if (owner.disabled && owner.stop_runs_at && runs_now) {
    return "the account is disabled: this is stopped at " + to_rfc3339(*owner.stop_runs_at);
  }
  const auto found = node_rows.find(instance.node);
  if (found == node_rows.end() || !found->second.draining) return {};
  const NodeRow& row = found->second;
  return fmt::format("the node is being drained{}: nothing new starts there{}{}", until_text(row),
                     runs_now ? ", this goes on" : "", why_text(row));
}

NodeView ControlCore::State::view(const NodeId& id) const {
  NodeView out;
  out.id = id;
  out.wanted.id = id;
  if (const auto row = node_rows.find(id); row != node_rows.end()) out.wanted = row->second;
  for (const auto& run_id : active) {
    const RunRow& run = runs.at(run_id);
    out.running += run.state != RunState::kQueued && instances.at(run.instance).node == id ? 1 : 0;
  }
  const auto live_node = nodes.find(id);
  if (live_node == nodes.end()) return out;
  const NodeLive& node = live_node->second;
  out.reachable = node.reachable;
  out.boot_id = node.observed.boot_id;
  out.driver_version = node.observed.driver_version;
  out.simulated_cards = node.observed.simulated_cards;
  out.cards = static_cast<std::int64_t>(node.observed.cards.size());
  for (const auto& card : node.observed.cards) out.cordoned += cordoned(card.id) ? 1 : 0;
  out.unknown_instances.assign(node.unknown.begin(), node.unknown.end());
  return out;
}

std::vector<NodeView> ControlCore::nodes() const {
  std::set<NodeId> ids;
  for (const auto& [id, node] : state_->nodes) ids.insert(id);
  for (const auto& [id, row] : state_->node_rows) ids.insert(id);
  std::vector<NodeView> out;
  for (const auto& id : ids) out.push_back(state_->view(id));
  return out;
}

Result<NodeView> ControlCore::drain_node(const RequestContext& context, const NodeId& node,
                                         std::optional<UtcTime> until, std::string_view reason) {
  ADL_TRY_STATUS(check_reason(reason));
  if (!state_->nodes.contains(node) && !state_->node_rows.contains(node)) {
    return no_such_node(node);
  }
  if (until && *until <= state_->now()) {
    return Error(ErrorKind::kInvalid, "bad_until", "until is in the past",
                 "name a time to come, or none");
  }
  NodeRow& row = state_->node_rows[node];
  row.id = node;
  const std::string before = node_json(row);
  row.draining = true;
  row.drain_until = until;
  row.reason = std::string(reason);
  row.changed_at = state_->now();
  state_->dirty_nodes.insert(node);
  state_->audit(context, {"node.drain", node.str(), before, node_json(row), row.reason});
  for (const auto& id : state_->active) {
    const RunRow& run = state_->runs.at(id);
    const InstanceRow& instance = state_->instances.at(run.instance);
    if (instance.node != node) continue;
    state_->emit(instance, id,
                 {"notice", state_->notice_of(instance),
                  json_object({{"until", until ? to_rfc3339(*until) : ""}, {"reason", reason}}),
                  context.actor, context.request_id});
  }
  return state_->view(node);
}

Result<NodeView> ControlCore::resume_node(const RequestContext& context, const NodeId& node,
                                          std::string_view reason) {
  ADL_TRY_STATUS(check_reason(reason));
  const auto found = state_->node_rows.find(node);
  if (found == state_->node_rows.end() && !state_->nodes.contains(node)) {
    return no_such_node(node);
  }
  if (found == state_->node_rows.end() || !found->second.draining) return state_->view(node);
  NodeRow& row = found->second;
  const std::string before = node_json(row);
  row.draining = false;
  row.drain_until.reset();
  row.reason.clear();
  row.changed_at = state_->now();
  state_->dirty_nodes.insert(node);
  state_->audit(context, {"node.resume", node.str(), before, node_json(row), std::string(reason)});
  for (const auto& id : state_->active) {
    const InstanceRow& instance = state_->instances.at(state_->runs.at(id).instance);
    if (instance.node != node) continue;
    state_->emit(
        instance, id,
        {"notice", "the node is no longer drained", "{}", context.actor, context.request_id});
  }
  state_->schedule();
  return state_->view(node);
}

}  // namespace autodl
