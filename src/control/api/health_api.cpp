// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// /healthz, /readyz, /version (no sign-in) and POST /api/v1/setup.
#include <algorithm>
#include <tuple>

#include "control/api/api.hpp"
#include "control/api/to_api.hpp"
#include "wire/api_json.hpp"

namespace autodl {
namespace {

Task<void> healthz(Api*, http::Exchange& exchange) {
  std::ignore = co_await exchange.send(json_response(200, R"({"ok":true})"));
}

Task<void> readyz(Api* api, http::Exchange& exchange) {
  auto command = [node = api->options.node](ControlCore& core) -> Status {
    if (core.node_reachable(node)) return {};
    return Error(ErrorKind::kUnavailable, "node_away", "the node does not answer",
                 "wait, or look at the node's log");
  };
  const auto ready = co_await api->runner.run(std::move(command));
  if (!ready.ok()) {
    co_await api->fail(exchange, ready.error());
    co_return;
  }
  std::ignore = co_await exchange.send(json_response(200, R"({"ready":true})"));
}

Task<void> version(Api* api, http::Exchange& exchange) {
  auto command = [](ControlCore& core) -> Result<bool> {
    const auto nodes = core.nodes();
    return std::any_of(nodes.begin(), nodes.end(),
                       [](const NodeView& node) { return node.simulated_cards; });
  };
  const auto simulated = co_await api->runner.run(std::move(command));
  api::Version answer;
  answer.version = api->options.version;
  answer.simulated_gpus = simulated.value_or(false);
  std::ignore = co_await exchange.send(json_response(200, api::to_json(answer)));
}

Task<void> setup(Api* api, http::Exchange& exchange) {
  auto body = api::from_json<api::SetupRequest>(exchange.request().body);
  if (!body.ok()) {
    co_await api->fail(exchange, body.error());
    co_return;
  }
  const auto allowed = api->setup_token.check(body->setup_token);
  auto command = [allowed, name = body->name,
                  id = exchange.request().request_id](ControlCore& core) -> Result<NewAccount> {
    if (core.has_operator())
      return Error(ErrorKind::kConflict, "already_set_up", "there is an operator already",
                   "ask the operator for an account");
    ADL_TRY_STATUS(Status(allowed));
    RequestContext context;
    context.request_id = id;
    context.actor = Actor::kOperator;
    return core.create_account(context, name, Role::kOperator);
  };
  auto account = co_await api->runner.run(std::move(command));
  if (!account.ok()) {
    co_await api->fail(exchange, account.error());
    co_return;
  }
  api->setup_token.used();
  auto response = json_response(201, api::to_json(to_api(*account)));
  response.headers.add("Cache-Control", "no-store");
  std::ignore = co_await exchange.send(std::move(response));
}

}  // namespace

void add_health_routes(http::Router& router, Api& api) {
  add_handler(router, api, "GET", "/healthz", healthz);
  add_handler(router, api, "GET", "/readyz", readyz);
  add_handler(router, api, "GET", "/version", version);
  add_handler(router, api, "POST", "/api/v1/setup", setup);
}

}  // namespace autodl
