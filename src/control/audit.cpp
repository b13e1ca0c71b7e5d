// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The audit: what operators changed, written in the transaction of the change itself.
#include "control/detail/core_state.hpp"

namespace autodl {

void ControlCore::State::audit(const RequestContext& context, AuditDraft draft) {
  AuditRow row;
  row.seq = ++audit_seq;
  row.at = now();
  row.actor = context.caller;
  const auto actor = accounts.find(context.caller);
  row.actor_name = actor != accounts.end()             ? actor->second.name
                   : context.actor == Actor::kPlatform ? "platform"
                                                       : "setup";
  row.action = draft.action;
  row.target = std::move(draft.target);
  row.before = std::move(draft.before);
  row.after = std::move(draft.after);
  row.reason = std::move(draft.reason);
  row.request_id = context.request_id;
  batch.audit.push_back(std::move(row));
}

Result<std::vector<AuditRow>> ControlCore::audit(const AuditFilter& filter) const {
  return state_->store.audit(filter);
}

Result<std::string> ControlCore::note_backup(const RequestContext& context) {
  const std::string id = state_->ids.next();
  state_->audit(context, {"backup.make", id, "{}", "{}", ""});
  return id;
}

}  // namespace autodl
