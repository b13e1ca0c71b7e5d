// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "control/api/api.hpp"
#include "control/api/query_values.hpp"
#include "control/api/to_api.hpp"
#include "wire/api_json.hpp"

namespace autodl {
namespace {

Result<http::Response> instance_bill(ControlCore& core, const CallContext& call) {
  ADL_TRY(bill, core.bill(call.caller.account, call.request.param("id")));
  return json_response(200, api::to_json(to_api(bill)));
}

Result<http::Response> account_bill(ControlCore& core, const CallContext& call) {
  ADL_TRY(query, http::Query::parse(call.request.query));
  ADL_TRY_STATUS(query.only({"from", "to"}));
  ADL_TRY(from, query_time(query, "from"));
  ADL_TRY(to, query_time(query, "to"));
  ADL_TRY(bill, core.account_bill(call.caller.account, from, to));
  return json_response(200, api::to_json(to_api(bill)));
}

}  // namespace

void add_bill_routes(http::Router& router, Api& api) {
  add_call(router, api, "GET", "/api/v1/instances/{id}/bill", instance_bill,
           About("showInstanceBill", "money", "What an instance has cost, by the second")
               .answers<api::Bill>(200, "The bill")
               .refuses({404}));
  add_call(router, api, "GET", "/api/v1/bill", account_bill,
           About("showBill", "money", "What all of the caller's instances have cost")
               .query("from", time_schema(), "only runs that ended later")
               .query("to", time_schema(), "only runs that began earlier")
               .answers<api::AccountBill>(200, "The bill")
               .refuses({422}));
}

}  // namespace autodl
