// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "control/api/api.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "control/api/failures.hpp"
#include "control/api/openapi.hpp"

namespace autodl {
namespace {

constexpr std::size_t kJsonBodyBytesMax = 1 << 20;
constexpr std::size_t kIdempotencyKeyBytesMax = 128;

Status check_idempotency_key(std::string_view key) {
  const bool printable =
      std::all_of(key.begin(), key.end(), [](char c) { return c >= 0x20 && c < 0x7F; });
  if (key.size() <= kIdempotencyKeyBytesMax && printable) return {};
  return Error(ErrorKind::kInvalid, "bad_idempotency_key",
               "Idempotency-Key must be 1 to 128 printable ASCII characters");
}

std::string request_hash(const http::Request& request) {
  return sha256_hex(
      fmt::format("{}\n{}\n{}\n{}", request.method, request.path, request.query, request.body));
}

struct CallOptions {
  bool operator_only = false;
  bool remember = true;  // whether the answer is kept under the Idempotency-Key
};

// On the core's thread: everything of a call in one transaction.
Result<http::Response> run_call(ControlCore& core, const Credentials& credentials,
                                const http::Request& request, const CoreCall& call,
                                const CallOptions& options, AccountId* caller_out) {
  ADL_TRY(caller, sign_in(core, credentials));
  *caller_out = caller.account;
  if (options.operator_only) ADL_TRY_STATUS(require_operator(caller));
  const std::string key(request.headers.get("Idempotency-Key"));
  const bool remember = credentials.mutating && options.remember && !key.empty();
  std::string hash;
  if (remember) {
    hash = request_hash(request);
    ADL_TRY(earlier, core.find_answer(caller.account, key, hash));
    if (earlier) return json_response(static_cast<int>(earlier->status), earlier->body);
  }
  RequestContext context;
  context.request_id = request.request_id;
  context.actor = caller.actor();
  context.caller = caller.account;
  const AccountId account = caller.account;
  const CallContext call_context{request, std::move(caller), std::move(context)};
  ADL_TRY(response, call(core, call_context));
  if (remember && response.status < 300)
    core.remember_answer(account, key, hash, response.status, response.body);
  return response;
}

Task<void> serve_call(Api* api, const CoreCall* call, CallOptions options,
                      http::Exchange& exchange) {
  const auto& request = exchange.request();
  const auto key_form = check_idempotency_key(request.headers.get("Idempotency-Key"));
  auto credentials = read_credentials(request, BodySigning::kWhole, api->clock);
  if (!credentials.ok() || !key_form.ok()) {
    co_await api->fail(exchange, credentials.ok() ? key_form.error() : credentials.error());
    co_return;
  }
  AccountId account;
  auto command = [&request, call, options, known = std::move(*credentials),
                  out = &account](ControlCore& core) {
    return run_call(core, known, request, *call, options, out);
  };
  auto response = co_await api->runner.run(std::move(command));
  if (!account.empty()) exchange.set_actor("account " + account.str());
  if (!response.ok()) {
    co_await api->fail(exchange, response.error());
    co_return;
  }
  std::ignore = co_await exchange.send(std::move(*response));
}

}  // namespace

Api::Api(CoreRunner& core_runner, StreamOpener& stream_opener, BlockingPool& blocking_pool,
         const Clock& time_source, ApiOptions api_options)
    : runner(core_runner),
      streams(stream_opener),
      pool(blocking_pool),
      clock(time_source),
      options(std::move(api_options)),
      files(streams, pool),
      tickets(time_source),
      setup_token(options.setup_token_path) {}

http::Router Api::make_router() {
  routes.clear();
  http::Router router;
  add_health_routes(router, *this);
  add_instance_routes(router, *this);
  add_event_routes(router, *this);
  add_log_routes(router, *this);
  add_exec_routes(router, *this);
  add_file_routes(router, *this);
  add_transfer_routes(router, *this);
  add_bill_routes(router, *this);
  add_catalogue_routes(router, *this);
  add_account_routes(router, *this);
  add_admin_routes(router, *this);
  add_operator_routes(router, *this);
  add_backup_routes(router, *this);
  openapi = openapi_document(routes, options.version);
  return router;
}

void Api::stop() {
  stopping_ = true;
  files.stop();
  runner.events_changed().notify();
}

Task<void> Api::fail(http::Exchange& exchange, Error error) {
  if (exchange.answered()) co_return;
  auto response = failure_response(error, exchange.request().request_id, clock);
  std::ignore = co_await exchange.send(std::move(response));
}

Task<std::optional<Caller>> Api::signed_in(http::Exchange& exchange, BodySigning signing) {
  auto credentials = read_credentials(exchange.request(), signing, clock);
  if (!credentials.ok()) {
    co_await fail(exchange, credentials.error());
    co_return std::nullopt;
  }
  auto command = [known = std::move(*credentials)](ControlCore& core) {
    return sign_in(core, known);
  };
  auto caller = co_await runner.run(std::move(command));
  if (!caller.ok()) {
    co_await fail(exchange, caller.error());
    co_return std::nullopt;
  }
  exchange.set_actor("account " + caller->account.str());
  co_return std::move(*caller);
}

void add_call(http::Router& router, Api& api, std::string method, std::string pattern,
              CoreCall call, About about) {
  CallOptions options;
  options.operator_only = about.access == About::Access::kOperator;
  options.remember = about.remember;
  about.method = method;
  about.pattern = pattern;
  about.core_call = true;
  api.routes.push_back(std::move(about));
  http::Route route;
  route.method = std::move(method);
  route.pattern = std::move(pattern);
  route.body_bytes_max = kJsonBodyBytesMax;
  // The router keeps the call alive as long as its route.
  auto kept = std::make_shared<const CoreCall>(std::move(call));
  route.handler = [api = &api, kept, options](http::Exchange& exchange) {
    return serve_call(api, kept.get(), options, exchange);
  };
  router.add(std::move(route));
}

void add_handler(http::Router& router, Api& api, std::string method, std::string pattern,
                 ApiHandler handle, About about, http::BodyMode body, std::size_t body_bytes_max) {
  about.method = method;
  about.pattern = pattern;
  api.routes.push_back(std::move(about));
  http::Route route;
  route.method = std::move(method);
  route.pattern = std::move(pattern);
  route.body = body;
  route.body_bytes_max = body_bytes_max;
  route.handler = [api = &api, handle](http::Exchange& exchange) { return handle(api, exchange); };
  router.add(std::move(route));
}

http::Response json_response(int status, std::string body) {
  http::Response response;
  response.status = status;
  response.headers.add("Content-Type", "application/json");
  response.body = std::move(body);
  return response;
}

}  // namespace autodl
