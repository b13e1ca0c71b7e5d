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

// A name as a template argument.
template <std::size_t N>
struct Name {
  char text[N];
  constexpr Name(const char (&from)[N]) { std::copy(from, from + N, text); }  // NOLINT: a literal
};

// {"ok":true}, under a name.
template <Name schema, Name member>
boost::json::object flag_answer(api::SchemaSet& set) {
  boost::json::object properties;
  properties[member.text] = boost::json::object{{"type", "boolean"}};
  boost::json::object out{{"type", "object"}};
  out["properties"] = std::move(properties);
  return set.add(schema.text, std::move(out));
}

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

Task<void> openapi(Api* api, http::Exchange& exchange) {
  std::ignore = co_await exchange.send(json_response(200, api->openapi));
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
  add_handler(router, api, "GET", "/healthz", healthz,
              About("healthz", "server", "Whether the server answers")
                  .open()
                  .answers_with(200, "It does", "application/json", flag_answer<"Healthy", "ok">));
  add_handler(router, api, "GET", "/readyz", readyz,
              About("readyz", "server", "Whether store and node are there")
                  .open()
                  .answers_with(200, "They are", "application/json", flag_answer<"Ready", "ready">)
                  .rarely(503, "only while the store or the node is away"));
  add_handler(router, api, "GET", "/version", version,
              About("version", "server", "What runs here")
                  .open()
                  .answers<api::Version>(200, "Name and version"));
  add_handler(router, api, "GET", "/openapi.json", openapi,
              About("openapi", "server", "This document")
                  .open()
                  .answers_with(200, "OpenAPI 3.1", "application/json", [](api::SchemaSet&) {
                    return boost::json::object{{"type", "object"}};
                  }));
  add_handler(router, api, "POST", "/api/v1/setup", setup,
              About("setup", "server", "The first operator's account")
                  .says("The token is in `<state>/control/setup-token` until it is used.")
                  .open()
                  .takes<api::SetupRequest>()
                  .answers<api::NewAccount>(201, "The account and its secrets, shown this once")
                  .refuses({403, 409, 422}));
}

}  // namespace autodl
