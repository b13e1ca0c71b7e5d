// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// exec: the connection leaves HTTP and carries the frames of docs/dev/contracts.md §4 between the
// client and the instance's init; control looks at none of them.
#include <tuple>

#include "control/api/api.hpp"
#include "control/api/query_values.hpp"
#include "net/splice.hpp"

namespace autodl {
namespace {

constexpr Millis kOpenLimit{15'000};
constexpr std::string_view kProtocol = "autodl-frames";

// What the node needs to know; kConflict "not_running" where there is nothing to run in.
Result<StreamWish> read_wish(ControlCore& core, const AccountId& account, std::string_view key,
                             bool pty) {
  ADL_TRY(view, core.instance(account, key));
  if (view.row.state != InstanceState::kRunning || !view.run)
    return Error(ErrorKind::kConflict, "not_running",
                 "the instance is " + std::string(to_string(view.row.state)), "start it first");
  if (!view.reachable)
    return Error(ErrorKind::kUnavailable, "node_away", "the instance's node does not answer",
                 "try again");
  StreamWish wish;
  wish.kind = pty ? "pty" : "exec";
  wish.instance = view.row.id.str();
  wish.run = view.run->id.str();
  return wish;
}

Result<bool> read_pty(const http::Request& request) {
  ADL_TRY(query, http::Query::parse(request.query));
  ADL_TRY_STATUS(query.only({"pty"}));
  return query_flag(query, "pty");
}

Task<Result<std::unique_ptr<Conn>>> open_stream(Api* api, AccountId account, std::string key,
                                                bool pty, std::string peer) {
  auto command = [account = std::move(account), key = std::move(key), pty](ControlCore& core) {
    return read_wish(core, account, key, pty);
  };
  auto wish = co_await api->runner.run(std::move(command));
  if (!wish.ok()) co_return wish.error();
  // A client on a unix socket has no address: to the instance it is the node.
  if (peer.rfind("unix:", 0) != 0) wish->client = std::move(peer);
  wish->local = api->options.local_address;
  OpenGate::Place place(api->gate, InstanceId(wish->instance));
  const auto entered = co_await place.enter(kOpenLimit);
  if (!entered.ok()) co_return entered.error();
  auto open = [streams = &api->streams, wanted = *wish] {
    return streams->open(wanted, kOpenLimit);
  };
  auto fd = co_await run_blocking(api->pool, std::move(open));
  if (!fd.ok()) co_return fd.error();
  const auto executor = co_await boost::asio::this_coro::executor;
  co_return adopt_conn(executor, std::move(*fd), "init of " + wish->instance);
}

Task<void> exec(Api* api, http::Exchange& exchange) {
  const auto caller = co_await api->signed_in(exchange, BodySigning::kWhole);
  if (!caller) co_return;
  const auto& request = exchange.request();
  const auto pty = read_pty(request);
  if (!pty.ok()) {
    co_await api->fail(exchange, pty.error());
    co_return;
  }
  if (!http::has_token(request.headers.get("Upgrade"), kProtocol)) {
    const Error error(ErrorKind::kInvalid, "upgrade_required",
                      "this call needs 'Connection: Upgrade' and 'Upgrade: autodl-frames'");
    co_await api->fail(exchange, error);
    co_return;
  }
  auto stream = co_await open_stream(api, caller->account, request.param("id"), *pty, request.peer);
  if (!stream.ok()) {
    co_await api->fail(exchange, stream.error());
    co_return;
  }
  auto upgraded = co_await exchange.upgrade(std::string(kProtocol));
  if (!upgraded.ok()) {
    co_await api->fail(exchange, upgraded.error());
    co_return;
  }
  const auto sent = co_await (*stream)->write_all(upgraded->leftover);
  if (sent.ok()) co_await splice_both(*upgraded->conn, **stream);
}

}  // namespace

void add_exec_routes(http::Router& router, Api& api) {
  add_handler(router, api, "POST", "/api/v1/instances/{id}/exec", exec,
              About("exec", "exec", "Run a command inside, or open a terminal")
                  .says("With `Connection: Upgrade` and `Upgrade: autodl-frames`; then frames in "
                        "both directions (docs/dev/contracts.md, section 4).")
                  .query("pty", flag_schema(), "1: with a terminal")
                  .header("Upgrade", words_schema({"autodl-frames"}), "the protocol of the frames")
                  .answers_empty(101, "The connection carries frames from here on")
                  .refuses({404, 409, 422, 426}));
}

}  // namespace autodl
