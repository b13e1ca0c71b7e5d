// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Api: the REST API over ControlCore. Holds what handlers share; make_router() has every route.
// Lives on the loop's thread and outlives the server that runs its router.
//
//   Api api(runner, streams, pool, clock, options);
//   http::Server server(loop, api.make_router());
//   … at the end: api.stop(); co_await server.stop(grace); runner.stop();
//
// Most calls are a CoreCall: a plain function that runs on the core's thread between sign-in and
// answer, so that sign-in, nonce, idempotency and effect are one transaction. What streams
// (events, logs, files, exec) is a coroutine that signs in first.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "async/blocking_pool.hpp"
#include "control/api/about.hpp"
#include "control/api/file_channels.hpp"
#include "control/api/open_gate.hpp"
#include "control/api/setup_token.hpp"
#include "control/api/sign_in.hpp"
#include "control/api/streams.hpp"
#include "control/api/tickets.hpp"
#include "control/core_runner.hpp"
#include "http/router.hpp"

namespace autodl {

struct ApiOptions {
  std::string version = "0.1.0";
  NodeId node{"local"};
  std::string local_address = "127.0.0.1:8480";  // told to instances as the endpoint
  std::string setup_token_path;                  // empty: no first operator over the API
  std::string database_path;                     // of the store; empty: no backups
};

// What a CoreCall gets. The request outlives the call.
struct CallContext {
  const http::Request& request;
  Caller caller;
  RequestContext context;
};
using CoreCall = std::function<Result<http::Response>(ControlCore&, const CallContext&)>;

class Api {
 public:
  Api(CoreRunner& core_runner, StreamOpener& stream_opener, BlockingPool& blocking_pool,
      const Clock& time_source, ApiOptions api_options);

  http::Router make_router();
  void stop();  // ends long answers; the server's stop() follows
  bool stopping() const { return stopping_; }

  // For handlers that are coroutines: who calls; the failure was answered where it is none.
  Task<std::optional<Caller>> signed_in(http::Exchange& exchange, BodySigning signing);
  // Answers with a problem (unless an answer has begun).
  Task<void> fail(http::Exchange& exchange, Error error);

  CoreRunner& runner;
  StreamOpener& streams;
  BlockingPool& pool;
  const Clock& clock;
  const ApiOptions options;
  FileChannels files;
  Tickets tickets;
  SetupToken setup_token;
  OpenGate gate;
  std::vector<About> routes;  // what make_router() registered
  std::string openapi;        // the document of them

 private:
  bool stopping_ = false;
};

// Registers a CoreCall with sign-in and idempotency; who may call is what About says.
void add_call(http::Router& router, Api& api, std::string method, std::string pattern,
              CoreCall call, About about);
// Registers a coroutine handler: handle(Api*, Exchange&), which signs in itself.
using ApiHandler = Task<void> (*)(Api*, http::Exchange&);
void add_handler(http::Router& router, Api& api, std::string method, std::string pattern,
                 ApiHandler handle, About about, http::BodyMode body = http::BodyMode::kWhole,
                 std::size_t body_bytes_max = 64 * 1024);

http::Response json_response(int status, std::string body);

// ---- the resources, a file each
void add_health_routes(http::Router& router, Api& api);
void add_account_routes(http::Router& router, Api& api);
void add_admin_routes(http::Router& router, Api& api);
void add_operator_routes(http::Router& router, Api& api);
void add_backup_routes(http::Router& router, Api& api);
void add_catalogue_routes(http::Router& router, Api& api);
void add_instance_routes(http::Router& router, Api& api);
void add_bill_routes(http::Router& router, Api& api);
void add_event_routes(http::Router& router, Api& api);
void add_log_routes(http::Router& router, Api& api);
void add_exec_routes(http::Router& router, Api& api);
void add_file_routes(http::Router& router, Api& api);
void add_transfer_routes(http::Router& router, Api& api);

}  // namespace autodl
