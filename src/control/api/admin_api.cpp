// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What operators do: accounts, credit, nodes, cards.
#include "control/api/api.hpp"
#include "control/api/to_api.hpp"
#include "wire/api_json.hpp"

namespace autodl {
namespace {

Result<http::Response> list_accounts(ControlCore& core, const CallContext&) {
  return json_response(200, api::page_json(all_to_api(core.accounts()), std::nullopt));
}

Result<http::Response> create_account(ControlCore& core, const CallContext& call) {
  ADL_TRY(body, api::from_json<api::AccountRequest>(call.request.body));
  const auto role = parse_role(body.role);
  if (!role) return Error(ErrorKind::kInvalid, "bad_role", "'/role' must be user or operator");
  ADL_TRY(account,
          core.create_account(call.context, body.name, *role, {body.group, body.credit_micro}));
  auto response = json_response(201, api::to_json(to_api(account)));
  response.headers.add("Cache-Control", "no-store");
  return response;
}

Result<http::Response> credit(ControlCore& core, const CallContext& call) {
  ADL_TRY(body, api::from_json<api::CreditRequest>(call.request.body));
  ADL_TRY(account, core.account_named(call.request.param("id")));
  ADL_TRY(view, core.credit(call.context, account, body.amount_micro, body.reason));
  return json_response(200, api::to_json(to_api(view)));
}

Result<http::Response> list_nodes(ControlCore& core, const CallContext&) {
  return json_response(200, api::page_json(all_to_api(core.nodes()), std::nullopt));
}

Result<http::Response> list_cards(ControlCore& core, const CallContext&) {
  return json_response(200, api::page_json(all_to_api(core.cards()), std::nullopt));
}

}  // namespace

void add_admin_routes(http::Router& router, Api& api) {
  add_call(router, api, "GET", "/api/v1/admin/accounts", list_accounts,
           About("listAccounts", "admin", "All accounts")
               .for_operators()
               .answers_page<api::Account>("The accounts"));
  add_call(router, api, "POST", "/api/v1/admin/accounts", create_account,
           About("createAccount", "admin", "A new account; its secrets are shown this once")
               .for_operators()
               .keeps_no_answer()  // secrets are kept nowhere
               .takes<api::AccountRequest>()
               .answers<api::NewAccount>(201, "The account and its secrets")
               .refuses({409, 422}));
  add_call(router, api, "POST", "/api/v1/admin/accounts/{id}/credit", credit,
           About("creditAccount", "admin", "Give money to an account, or correct it")
               .for_operators()
               .takes<api::CreditRequest>()
               .answers<api::Account>(200, "The account")
               .refuses({402, 404, 409, 422}));
  add_call(router, api, "GET", "/api/v1/admin/nodes", list_nodes,
           About("listNodes", "admin", "The nodes")
               .for_operators()
               .answers_page<api::Node>("The nodes"));
  add_call(router, api, "GET", "/api/v1/admin/cards", list_cards,
           About("listCards", "admin", "All cards, their health and who holds them")
               .for_operators()
               .answers_page<api::Card>("The cards"));
}

}  // namespace autodl
