// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What operators change beside money: who may sign in, quotas, drained nodes, cordoned cards, names
// of images; and the audit of all that.
#include "control/api/api.hpp"
#include "control/api/query_values.hpp"
#include "control/api/to_api.hpp"
#include "wire/api_json.hpp"

namespace autodl {
namespace {

constexpr std::int64_t kSeqMax = std::numeric_limits<std::int64_t>::max();

Result<http::Response> disable(ControlCore& core, const CallContext& call) {
  ADL_TRY(body, api::from_json<api::DisableRequest>(call.request.body));
  ADL_TRY(account, core.account_named(call.request.param("id")));
  const Millis stop_after(body.stop_after_s * 1'000);
  ADL_TRY(view, core.disable_account(call.context, account, stop_after, body.reason));
  return json_response(200, api::to_json(to_api(view)));
}

Result<http::Response> enable(ControlCore& core, const CallContext& call) {
  ADL_TRY(body, api::from_json<api::ReasonRequest>(call.request.body));
  ADL_TRY(account, core.account_named(call.request.param("id")));
  ADL_TRY(view, core.enable_account(call.context, account, body.reason));
  return json_response(200, api::to_json(to_api(view)));
}

Result<http::Response> user_quota(ControlCore& core, const CallContext& call) {
  ADL_TRY(body, api::from_json<api::QuotaRequest>(call.request.body));
  ADL_TRY(account, core.account_named(call.request.param("id")));
  const Quota quota{body.cards_max, body.instances_max};
  ADL_TRY(view, core.set_quota(call.context, account, quota, body.reason));
  return json_response(200, api::to_json(to_api(view)));
}

Result<http::Response> group_quota(ControlCore& core, const CallContext& call) {
  ADL_TRY(body, api::from_json<api::QuotaRequest>(call.request.body));
  const Quota quota{body.cards_max, body.instances_max};
  const auto group = call.request.param("id");
  ADL_TRY(view, core.set_group_quota(call.context, group, quota, body.reason));
  return json_response(200, api::to_json(to_api(view)));
}

// One more than asked is read, to know whether there is a next page.
template <class Row>
http::Response page_of(std::vector<Row> rows, std::int64_t limit) {
  std::optional<std::string> next;
  if (rows.size() > static_cast<std::size_t>(limit)) {
    rows.pop_back();
    next = std::to_string(rows.back().seq);
  }
  return json_response(200, api::page_json(all_to_api(rows), next));
}

Result<http::Response> audit(ControlCore& core, const CallContext& call) {
  ADL_TRY(query, http::Query::parse(call.request.query));
  ADL_TRY_STATUS(query.only({"limit", "cursor", "actor", "action", "target"}));
  ADL_TRY(limit, query_number(query, "limit", 50, 1, 200));
  ADL_TRY(cursor, query_number(query, "cursor", kSeqMax, 0, kSeqMax));
  AuditFilter filter;
  filter.before = cursor;
  filter.action = query.get("action").value_or("");
  filter.target = query.get("target").value_or("");
  filter.limit = static_cast<std::size_t>(limit) + 1;
  if (const auto actor = query.get("actor")) {
    const auto account = core.account_named(*actor);
    filter.actor = account.ok() ? *account : AccountId(*actor);  // unknown: nobody's changes
  }
  ADL_TRY(rows, core.audit(filter));
  return page_of(std::move(rows), limit);
}

Result<http::Response> drain(ControlCore& core, const CallContext& call) {
  ADL_TRY(body, api::from_json<api::DrainRequest>(call.request.body));
  std::optional<UtcTime> until;
  if (body.until) {
    until = parse_rfc3339(*body.until);
    if (!until) {
      return Error(ErrorKind::kInvalid, "bad_until",
                   "'/until' must be a time in UTC such as 2026-12-01T15:58:12Z");
    }
  }
  const NodeId node(std::string(call.request.param("id")));
  ADL_TRY(view, core.drain_node(call.context, node, until, body.reason));
  return json_response(200, api::to_json(to_api(view)));
}

Result<http::Response> resume(ControlCore& core, const CallContext& call) {
  ADL_TRY(body, api::from_json<api::ReasonRequest>(call.request.body));
  const NodeId node(std::string(call.request.param("id")));
  ADL_TRY(view, core.resume_node(call.context, node, body.reason));
  return json_response(200, api::to_json(to_api(view)));
}

Result<http::Response> change_cordon(ControlCore& core, const CallContext& call, bool cordoned) {
  ADL_TRY(body, api::from_json<api::ReasonRequest>(call.request.body));
  const CardId card(std::string(call.request.param("id")));
  ADL_TRY(view, core.cordon_card(call.context, card, cordoned, body.reason));
  return json_response(200, api::to_json(to_api(view)));
}

Result<http::Response> cordon(ControlCore& core, const CallContext& call) {
  return change_cordon(core, call, true);
}

Result<http::Response> uncordon(ControlCore& core, const CallContext& call) {
  return change_cordon(core, call, false);
}

Result<http::Response> history(ControlCore& core, const CallContext& call) {
  ADL_TRY(query, http::Query::parse(call.request.query));
  ADL_TRY_STATUS(query.only({"limit", "cursor"}));
  ADL_TRY(limit, query_number(query, "limit", 50, 1, 200));
  ADL_TRY(cursor, query_number(query, "cursor", kSeqMax, 0, kSeqMax));
  std::optional<std::int64_t> before;
  if (query.get("cursor")) before = cursor;
  const CardId card(std::string(call.request.param("id")));
  ADL_TRY(facts, core.card_history(card, before, static_cast<std::size_t>(limit) + 1));
  return page_of(std::move(facts), limit);
}

Result<http::Response> list_aliases(ControlCore& core, const CallContext&) {
  return json_response(200, api::page_json(all_to_api(core.image_aliases()), std::nullopt));
}

Result<http::Response> set_alias(ControlCore& core, const CallContext& call) {
  ADL_TRY(body, api::from_json<api::ImageAliasRequest>(call.request.body));
  ADL_TRY(row, core.set_image_alias(call.context, body.alias, body.reference, body.reason));
  return json_response(200, api::to_json(to_api(row)));
}

void add_user_routes(http::Router& router, Api& api) {
  add_call(
      router, api, "POST", "/api/v1/admin/accounts/{id}/disable", disable,
      About("disableAccount", "admin", "Refuse an account's sign-in and stop what it runs")
          .says("{id} is an id or a name. What waits is cancelled; what runs gets a notice and "
                "is stopped after stop_after_s.")
          .for_operators()
          .takes<api::DisableRequest>()
          .answers<api::Account>(200, "The account")
          .refuses({404, 409, 422}));
  add_call(router, api, "POST", "/api/v1/admin/accounts/{id}/enable", enable,
           About("enableAccount", "admin", "Let a disabled account in again")
               .for_operators()
               .takes<api::ReasonRequest>()
               .answers<api::Account>(200, "The account")
               .refuses({404, 422}));
  add_call(router, api, "POST", "/api/v1/admin/accounts/{id}/quota", user_quota,
           About("setQuota", "admin", "How many cards and instances a user may hold at once")
               .for_operators()
               .takes<api::QuotaRequest>()
               .answers<api::Account>(200, "The account")
               .refuses({404, 422}));
  add_call(router, api, "POST", "/api/v1/admin/groups/{id}/quota", group_quota,
           About("setGroupQuota", "admin", "How many cards and instances a group may hold at once")
               .for_operators()
               .takes<api::QuotaRequest>()
               .answers<api::GroupQuota>(200, "The group")
               .refuses({404, 422}));
}

}  // namespace

void add_operator_routes(http::Router& router, Api& api) {
  add_user_routes(router, api);
  add_call(router, api, "GET", "/api/v1/admin/audit", audit,
           About("listAudit", "admin", "What operators changed, newest first")
               .for_operators()
               .paged()
               .query("actor", text_schema(), "only changes by this account (id or name)")
               .query("action", text_schema(), "only this action; 'user.' for all that begin so")
               .query("target", text_schema(), "only changes of this name or id")
               .answers_page<api::AuditEntry>("The changes")
               .refuses({422}));
  add_call(router, api, "POST", "/api/v1/admin/nodes/{id}/drain", drain,
           About("drainNode", "admin", "Nothing new starts on the node; what runs goes on")
               .for_operators()
               .takes<api::DrainRequest>()
               .answers<api::Node>(200, "The node")
               .refuses({404, 422}));
  add_call(router, api, "POST", "/api/v1/admin/nodes/{id}/resume", resume,
           About("resumeNode", "admin", "The node takes new runs again")
               .for_operators()
               .takes<api::ReasonRequest>()
               .answers<api::Node>(200, "The node")
               .refuses({404, 422}));
  add_call(router, api, "POST", "/api/v1/admin/cards/{id}/cordon", cordon,
           About("cordonCard", "admin", "The card is not granted any more")
               .for_operators()
               .takes<api::ReasonRequest>()
               .answers<api::Card>(200, "The card")
               .refuses({404, 422}));
  add_call(router, api, "POST", "/api/v1/admin/cards/{id}/uncordon", uncordon,
           About("uncordonCard", "admin", "The card may be granted again")
               .for_operators()
               .takes<api::ReasonRequest>()
               .answers<api::Card>(200, "The card")
               .refuses({404, 422}));
  add_call(router, api, "GET", "/api/v1/admin/cards/{id}/history", history,
           About("showCardHistory", "admin", "What befell a card, newest first")
               .for_operators()
               .paged()
               .answers_page<api::CardEvent>("Grants, quarantines, cordons")
               .refuses({404, 422}));
  add_call(router, api, "GET", "/api/v1/admin/image_aliases", list_aliases,
           About("listImageAliases", "admin", "Names that stand for images, beside the catalogue's")
               .for_operators()
               .answers_page<api::ImageAlias>("The aliases"));
  add_call(router, api, "POST", "/api/v1/admin/image_aliases", set_alias,
           About("setImageAlias", "admin", "Set an alias, or take it away by an empty reference")
               .for_operators()
               .takes<api::ImageAliasRequest>()
               .answers<api::ImageAlias>(200, "The alias")
               .refuses({409, 422}));
}

}  // namespace autodl
