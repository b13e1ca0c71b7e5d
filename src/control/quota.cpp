// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Who may go on, and with how much: disabled accounts, quotas of users and groups.
#include <fmt/format.h>

#include <algorithm>

#include "control/detail/core_state.hpp"

namespace autodl {
namespace {

constexpr std::int64_t kQuotaMax = 1'000'000;

std::string limit_text(const std::optional<std::int64_t>& limit) {
  return limit ? fmt::format("{}", *limit) : "null";
}

template <class Row>
std::string quota_json(const Row& row) {
  return fmt::format(R"({{"cards_max":{},"instances_max":{}}})", limit_text(row.cards_max),
                     limit_text(row.instances_max));
}

Status check_quota(const Quota& quota) {
  for (const auto& number : {quota.cards, quota.instances}) {
    if (!number || *number <= kQuotaMax) continue;
    return Error(ErrorKind::kInvalid, "bad_quota",
                 fmt::format("a quota is at most {}, or negative for none", kQuotaMax));
  }
  return {};
}

template <class Row>
void apply(const Quota& quota, Row& row) {
  const auto set = [](const std::optional<std::int64_t>& wanted,
                      std::optional<std::int64_t>& limit) {
    if (wanted) limit = *wanted < 0 ? std::nullopt : wanted;
  };
  set(quota.cards, row.cards_max);
  set(quota.instances, row.instances_max);
}

Error over(std::string message) {
  return Error(ErrorKind::kDenied, "quota_exceeded", std::move(message),
               "release what is not needed, or ask the operator for a larger quota");
}

}  // namespace

// ---- what is held

std::int64_t ControlCore::State::cards_held(const AccountId& account) const {
  std::int64_t count = 0;
  for (const auto& id : active) {
    const RunRow& run = runs.at(id);
    if (run.account == account) count += static_cast<std::int64_t>(run.cards.size());
  }
  return count;
}

std::int64_t ControlCore::State::instances_of(const AccountId& account) const {
  return std::count_if(instances.begin(), instances.end(), [&](const auto& item) {
    return item.second.account == account && item.second.state != InstanceState::kReleased;
  });
}

Holdings ControlCore::State::holdings() const {
  Holdings out;
  for (const auto& id : active) {
    const RunRow& run = runs.at(id);
    const AccountRow& owner = accounts.at(run.account);
    Holding& user = out.users[owner.id];
    const auto count = static_cast<std::int64_t>(run.cards.size());
    user.held += count;
    user.max = owner.cards_max;
    const auto group = groups.find(owner.group);
    if (group == groups.end()) continue;
    Holding& all = out.groups[owner.group];
    all.held += count;
    all.max = group->second.cards_max;
  }
  return out;
}

GroupView ControlCore::State::view(const GroupRow& group) const {
  GroupView out;
  out.row = group;
  for (const auto& [id, row] : accounts) {
    if (row.group != group.id) continue;
    ++out.members;
    out.names.push_back(row.name);
    out.held_micro += ledger.held(id);
    out.cards_held += cards_held(id);
    out.instances += instances_of(id);
  }
  out.currency = config.currency;
  if (group.budget_micro) {
    out.room_micro = *group.budget_micro - group.spent_micro - out.held_micro;
  }
  return out;
}

Status ControlCore::State::check_instance_quota(const AccountRow& account) const {
  if (account.disabled) return disabled_account();
  if (account.instances_max && instances_of(account.id) >= *account.instances_max) {
    return over(fmt::format("you have {} instances, your quota", *account.instances_max));
  }
  const auto group = groups.find(account.group);
  if (group == groups.end() || !group->second.instances_max) return {};
  if (view(group->second).instances < *group->second.instances_max) return {};
  return over(fmt::format("your group {} has {} instances, its quota", group->second.name,
                          *group->second.instances_max));
}

// A start that could never be granted is refused; one that only has to wait is queued.
Status ControlCore::State::check_card_quota(const AccountRow& account, std::int64_t wanted) const {
  if (account.cards_max && wanted > *account.cards_max && wanted > 0) {
    return over(
        fmt::format("it wants {} cards; your quota is {} at once", wanted, *account.cards_max));
  }
  const auto group = groups.find(account.group);
  if (group == groups.end() || !group->second.cards_max) return {};
  if (wanted == 0 || wanted <= *group->second.cards_max) return {};
  return over(fmt::format("it wants {} cards; the quota of your group {} is {} at once", wanted,
                          group->second.name, *group->second.cards_max));
}

// ---- changes

GroupId ControlCore::State::make_group(const RequestContext& context, std::string_view name) {
  GroupRow row;
  row.id = GroupId(ids.next());
  row.name = std::string(name);
  row.created_at = now();
  groups[row.id] = row;
  dirty_groups.insert(row.id);
  audit(context, {"group.add", row.name, "{}", json_object({{"id", row.id.str()}}), ""});
  return row.id;
}

Result<GroupId> ControlCore::State::group_named(std::string_view key) const {
  for (const auto& [id, row] : groups) {
    if (id.str() == key || row.name == key) return id;
  }
  return Error(ErrorKind::kNotFound, "no_such_group",
               fmt::format("there is no group '{}'", key.substr(0, 100)));
}

Result<AccountId> ControlCore::State::account_named(std::string_view key) const {
  for (const auto& [id, row] : accounts) {
    if (id.str() == key || row.name == key) return id;
  }
  return no_account();
}

Result<AccountId> ControlCore::account_named(std::string_view key) const {
  return state_->account_named(key);
}

Result<AccountView> ControlCore::disable_account(const RequestContext& context,
                                                 const AccountId& account, Millis stop_after,
                                                 std::string_view reason) {
  const auto found = state_->accounts.find(account);
  if (found == state_->accounts.end()) return no_account();
  ADL_TRY_STATUS(check_reason(reason));
  if (account == context.caller) {
    return Error(ErrorKind::kConflict, "own_account", "nobody can disable his own account",
                 "ask another operator");
  }
  AccountRow& row = found->second;
  const std::string before = fmt::format(R"({{"disabled":{}}})", row.disabled);
  row.disabled = true;
  row.stop_runs_at = state_->now() + stop_after;
  state_->dirty_accounts.insert(account);
  const std::string when = to_rfc3339(*row.stop_runs_at);
  state_->audit(context, {"user.disable", row.name, before,
                          fmt::format(R"({{"disabled":true,"stop_runs_at":"{}"}})", when),
                          std::string(reason)});
  for (const auto& id : std::set<RunId>(state_->active)) {
    RunRow& run = state_->runs.at(id);
    if (run.account != account) continue;
    InstanceRow& instance = state_->instances.at(run.instance);
    if (run.state == RunState::kQueued) {
      state_->end_queued(context, run);
    } else {
      state_->emit(instance, run.id,
                   {"notice", fmt::format("the account is disabled: this is stopped at {}", when),
                    json_object({{"stop_at", when}, {"reason", reason}}), context.actor,
                    context.request_id});
    }
  }
  state_->stop_disabled();
  return state_->view(row);
}

void ControlCore::State::stop_disabled() {
  for (const auto& [id, row] : accounts) {
    if (!row.disabled || !row.stop_runs_at || now() < *row.stop_runs_at) continue;
    for (const auto& run_id : std::set<RunId>(active)) {
      RunRow& run = runs.at(run_id);
      if (run.account != id || run.stop) continue;
      change(run).reason = "stopped by the operator: the account is disabled";
      ask_stop({"", Actor::kOperator}, instances.at(run.instance), StopBy::kUser,
               "the account is disabled");
    }
  }
}

Result<AccountView> ControlCore::enable_account(const RequestContext& context,
                                                const AccountId& account, std::string_view reason) {
  const auto found = state_->accounts.find(account);
  if (found == state_->accounts.end()) return no_account();
  ADL_TRY_STATUS(check_reason(reason));
  AccountRow& row = found->second;
  if (!row.disabled) return state_->view(row);  // asked twice: done already
  row.disabled = false;
  row.stop_runs_at.reset();
  state_->dirty_accounts.insert(account);
  state_->audit(context, {"user.enable", row.name, R"({"disabled":true})", R"({"disabled":false})",
                          std::string(reason)});
  return state_->view(row);
}

Result<AccountView> ControlCore::set_quota(const RequestContext& context, const AccountId& account,
                                           const Quota& quota, std::string_view reason) {
  const auto found = state_->accounts.find(account);
  if (found == state_->accounts.end()) return no_account();
  ADL_TRY_STATUS(check_reason(reason));
  ADL_TRY_STATUS(check_quota(quota));
  AccountRow& row = found->second;
  const std::string before = quota_json(row);
  apply(quota, row);
  state_->dirty_accounts.insert(account);
  state_->audit(context, {"quota.set", row.name, before, quota_json(row), std::string(reason)});
  return state_->view(row);
}

Result<GroupView> ControlCore::set_group_quota(const RequestContext& context,
                                               std::string_view group, const Quota& quota,
                                               std::string_view reason) {
  ADL_TRY(id, state_->group_named(group));
  ADL_TRY_STATUS(check_reason(reason));
  ADL_TRY_STATUS(check_quota(quota));
  GroupRow& row = state_->groups.at(id);
  const std::string before = quota_json(row);
  apply(quota, row);
  state_->dirty_groups.insert(id);
  state_->audit(context,
                {"group.quota.set", row.name, before, quota_json(row), std::string(reason)});
  return state_->view(row);
}

}  // namespace autodl
