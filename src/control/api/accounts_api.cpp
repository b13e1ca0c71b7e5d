// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The caller's own account: balance and SSH keys.
#include "control/api/api.hpp"
#include "control/api/to_api.hpp"
#include "wire/api_json.hpp"

namespace autodl {
namespace {

Result<http::Response> get_account(ControlCore& core, const CallContext& call) {
  ADL_TRY(view, core.account(call.caller.account));
  return json_response(200, api::to_json(to_api(view)));
}

Result<http::Response> get_balance(ControlCore& core, const CallContext& call) {
  ADL_TRY(view, core.account(call.caller.account));
  const api::Balance balance{view.balance_micro, view.held_micro, view.available_micro,
                             view.currency};
  return json_response(200, api::to_json(balance));
}

Result<http::Response> list_keys(ControlCore& core, const CallContext& call) {
  const auto keys = core.ssh_keys(call.caller.account);
  return json_response(200, api::page_json(all_to_api(keys), std::nullopt));
}

// A key that is not named has its comment's name ("ssh-ed25519 AAAA… me@host").
std::string name_of_key(std::string_view line) {
  const auto rest = line.substr(std::min(line.find(' '), line.size()));
  const auto key_end = rest.find(' ', 1);
  auto comment = key_end < rest.size() ? rest.substr(key_end + 1) : std::string_view();
  while (!comment.empty() && comment.back() <= ' ') comment.remove_suffix(1);
  return comment.empty() || comment.size() > 64 ? "key" : std::string(comment);
}

Result<http::Response> add_key(ControlCore& core, const CallContext& call) {
  ADL_TRY(body, api::from_json<api::SshKeyRequest>(call.request.body));
  if (body.name.empty()) body.name = name_of_key(body.public_key);
  ADL_TRY(key, core.add_ssh_key(call.context, call.caller.account, body.name, body.public_key));
  return json_response(201, api::to_json(to_api(key)));
}

Result<http::Response> remove_key(ControlCore& core, const CallContext& call) {
  ADL_TRY_STATUS(core.remove_ssh_key(call.context, call.caller.account, call.request.param("id")));
  http::Response response;
  response.status = 204;
  return response;
}

}  // namespace

void add_account_routes(http::Router& router, Api& api) {
  add_call(router, api, "GET", "/api/v1/account", get_account,
           About("showAccount", "account", "Who the caller is")
               .answers<api::Account>(200, "The account"));
  add_call(router, api, "GET", "/api/v1/balance", get_balance,
           About("showBalance", "money", "The caller's money")
               .answers<api::Balance>(200, "The balance"));
  add_call(router, api, "GET", "/api/v1/ssh_keys", list_keys,
           About("listSshKeys", "account", "Public keys that open the caller's instances")
               .answers_page<api::SshKey>("The keys"));
  add_call(router, api, "POST", "/api/v1/ssh_keys", add_key,
           About("addSshKey", "account", "Add a public key; running instances take it in too")
               .takes<api::SshKeyRequest>()
               .answers<api::SshKey>(201, "The key")
               .refuses({409, 422}));
  add_call(router, api, "DELETE", "/api/v1/ssh_keys/{id}", remove_key,
           About("removeSshKey", "account", "Remove a public key")
               .answers_empty(204, "It is gone")
               .refuses({404}));
}

}  // namespace autodl
