// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Groups: a lab, a course. Members' spending counts against one budget:
//   room = budget - spent - what is held for members' runs
// A start needs room for one hour, leases are renewed within it; what was held before a budget was
// lowered stays held. Spending counts for the group that the account is in when it is charged.
#include <fmt/format.h>

#include <algorithm>

#include "control/detail/core_state.hpp"

namespace autodl {

GroupRow* ControlCore::State::group_of(const AccountId& account) {
  const auto found = accounts.find(account);
  if (found == accounts.end() || found->second.group.empty()) return nullptr;
  const auto group = groups.find(found->second.group);
  return group == groups.end() ? nullptr : &group->second;
}

ControlCore::State::Among ControlCore::State::of_group_of(const AccountId& account) const {
  const GroupId group = accounts.at(account).group;
  return [this, group](const RunRow& run) {
    return !group.empty() && accounts.at(run.account).group == group;
  };
}

std::int64_t ControlCore::State::room(const AccountId& account) const {
  const GroupId& id = accounts.at(account).group;
  const auto group = groups.find(id);
  if (group == groups.end() || !group->second.budget_micro) return kNoLimit;
  std::int64_t left = *group->second.budget_micro - group->second.spent_micro;
  for (const auto& [member, row] : accounts) {
    if (row.group == id) left -= ledger.held(member);
  }
  return left;
}

void ControlCore::State::note_spent(const AccountId& account, std::int64_t amount) {
  if (GroupRow* group = group_of(account)) change(*group).spent_micro += amount;
}

namespace {

Status check_budget(const std::optional<std::int64_t>& budget_micro) {
  if (!budget_micro || (*budget_micro >= 0 && *budget_micro <= kMicroMax)) return {};
  return Error(ErrorKind::kInvalid, "bad_amount", "a budget is 0 to 10^18 micro-units");
}

std::string budget_json(const std::optional<std::int64_t>& budget_micro) {
  return budget_micro ? fmt::format(R"({{"budget_micro":{}}})", *budget_micro)
                      : R"({"budget_micro":null})";
}

}  // namespace

Result<GroupView> ControlCore::add_group(const RequestContext& context, std::string_view name,
                                         std::optional<std::int64_t> budget_micro) {
  State& state = *state_;
  ADL_TRY_STATUS(validate_account_name(name));
  ADL_TRY_STATUS(check_budget(budget_micro));
  if (state.group_named(name).ok()) {
    return Error(ErrorKind::kConflict, "name_taken",
                 fmt::format("there is a group '{}' already", name));
  }
  GroupRow& row = state.groups.at(state.make_group(context, name));
  if (budget_micro) {
    state.change(row).budget_micro = budget_micro;
    state.audit(context,
                {"group.budget", row.name, budget_json({}), budget_json(budget_micro), ""});
  }
  return state.view(row);
}

Result<GroupView> ControlCore::set_budget(const RequestContext& context, std::string_view group,
                                          std::optional<std::int64_t> budget_micro) {
  ADL_TRY_STATUS(check_budget(budget_micro));
  ADL_TRY(id, state_->group_named(group));
  GroupRow& row = state_->change(state_->groups.at(id));
  state_->audit(context, {"group.budget", row.name, budget_json(row.budget_micro),
                          budget_json(budget_micro), ""});
  row.budget_micro = budget_micro;
  return state_->view(row);
}

Result<GroupView> ControlCore::set_member(const RequestContext& context, std::string_view group,
                                          std::string_view account, bool member) {
  State& state = *state_;
  ADL_TRY(id, state.group_named(group));
  ADL_TRY(who, state.account_named(account));
  AccountRow& row = state.accounts.at(who);
  if (!member && row.group != id) {
    return Error(ErrorKind::kConflict, "not_a_member",
                 fmt::format("'{}' is not in group '{}'", row.name, state.groups.at(id).name));
  }
  const auto old = state.groups.find(row.group);
  const std::string before = old == state.groups.end() ? "" : old->second.name;
  row.group = member ? id : GroupId();
  state.dirty_accounts.insert(who);
  state.audit(context, {"group.member", row.name, json_object({{"group", before}}),
                        json_object({{"group", member ? state.groups.at(id).name : ""}}), ""});
  return state.view(state.groups.at(id));
}

std::vector<GroupView> ControlCore::groups() const {
  std::vector<GroupView> out;
  for (const auto& [id, row] : state_->groups) out.push_back(state_->view(row));
  return out;
}

Result<GroupView> ControlCore::group(std::string_view key) const {
  ADL_TRY(id, state_->group_named(key));
  return state_->view(state_->groups.at(id));
}

}  // namespace autodl
