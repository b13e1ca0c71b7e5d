// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Instances: create, list, show, start, stop, release, runs, monitor.
#include "control/api/api.hpp"
#include "control/api/failures.hpp"
#include "control/api/query_values.hpp"
#include "control/api/to_api.hpp"
#include "wire/api_json.hpp"

namespace autodl {
namespace {

CreateRequest to_request(api::CreateInstance&& body) {
  CreateRequest request;
  request.name = std::move(body.name);
  request.image = std::move(body.image);
  request.command = std::move(body.command);
  request.gpu_type = std::move(body.gpu_type);
  request.gpu_count = body.gpu_count;
  request.disk_bytes = body.disk_bytes;
  request.max_runtime_s = body.max_runtime_s;
  request.env = std::move(body.env);
  request.workdir = std::move(body.workdir);
  request.restart = std::move(body.restart);
  request.ssh_keys = std::move(body.ssh_keys);
  request.allow_cpu_image = body.allow_cpu_image;
  return request;
}

Result<http::Response> create(Api* api, ControlCore& core, const CallContext& call) {
  ADL_TRY(body, api::from_json<api::CreateInstance>(call.request.body));
  const auto request = to_request(std::move(body));
  const auto created = core.create_instance(call.context, call.caller.account, request);
  if (created.ok()) return json_response(202, api::to_json(to_api(*created)));
  boost::json::array names;
  for (const auto& name : core.candidates(created.error().code(), request))
    names.emplace_back(name);
  if (names.empty()) return created.error();
  boost::json::object extra;
  extra["candidates"] = std::move(names);
  return failure_response(created.error(), call.request.request_id, api->clock, std::move(extra));
}

Result<http::Response> list(ControlCore& core, const CallContext& call) {
  ADL_TRY(query, http::Query::parse(call.request.query));
  ADL_TRY_STATUS(query.only({"state", "limit", "cursor"}));
  ADL_TRY(limit, query_number(query, "limit", 50, 1, 200));
  std::optional<InstanceState> state;
  if (const auto text = query.get("state"); text && !text->empty()) {
    state = parse_instance_state(*text);
    if (!state)
      return Error(ErrorKind::kInvalid, "bad_parameter", "'state' is no state of an instance",
                   "states: created, queued, starting, running, stopping, stopped, failed, "
                   "released");
  }
  const auto cursor = query.get("cursor").value_or("");
  ADL_TRY(page,
          core.instances(call.caller.account, state, static_cast<std::size_t>(limit), cursor));
  return json_response(200, api::page_json(all_to_api(page.items), page.next));
}

Result<http::Response> show(ControlCore& core, const CallContext& call) {
  ADL_TRY(view, core.instance(call.caller.account, call.request.param("id")));
  return json_response(200, api::to_json(to_api(view)));
}

using Verb = Result<InstanceView> (ControlCore::*)(const RequestContext&, const AccountId&,
                                                   std::string_view);

Result<http::Response> do_verb(Verb verb, ControlCore& core, const CallContext& call) {
  if (!call.request.body.empty())
    ADL_TRY_STATUS(Status([&]() -> Status {
      ADL_TRY(nothing, api::from_json<api::NoMembers>(call.request.body));
      static_cast<void>(nothing);
      return {};
    }()));
  ADL_TRY(view, (core.*verb)(call.context, call.caller.account, call.request.param("id")));
  return json_response(202, api::to_json(to_api(view)));
}

Result<http::Response> runs(ControlCore& core, const CallContext& call) {
  ADL_TRY(list_of_runs, core.runs(call.caller.account, call.request.param("id")));
  return json_response(200, api::page_json(all_to_api(list_of_runs), std::nullopt));
}

Result<http::Response> monitor(ControlCore& core, const CallContext& call) {
  constexpr std::int64_t kMiB = 1 << 20;
  ADL_TRY(view, core.instance(call.caller.account, call.request.param("id")));
  api::Monitor out;
  out.disk_bytes = view.row.disk_bytes;
  const bool holds = view.run && view.run->state != RunState::kEnded;
  const auto cards = holds ? core.cards() : std::vector<CardView>{};
  // In the order in which the run was given them: that is their index inside.
  for (const auto& uuid : holds ? view.run->cards : std::vector<std::string>{})
    for (const auto& card : cards) {
      if (card.card.id.str() != uuid) continue;
      api::GpuSample sample;
      sample.index = static_cast<std::int64_t>(out.gpus.size());
      sample.uuid = uuid;
      sample.model = card.card.model;
      sample.utilization_percent = card.card.utilization_percent;
      if (card.card.memory_used_bytes) sample.memory_used_mib = *card.card.memory_used_bytes / kMiB;
      sample.memory_total_mib = card.card.memory_bytes / kMiB;
      sample.temperature_c = card.card.temperature_c;
      out.gpus.push_back(std::move(sample));
    }
  return json_response(200, api::to_json(out));
}

}  // namespace

void add_instance_routes(http::Router& router, Api& api) {
  const std::string base = "/api/v1/instances";
  const std::string one = base + "/{id}";
  // First: the call that is made most.
  add_call(router, api, "GET", one, show,
           About("showInstance", "instances", "One instance, live")
               .answers<api::Instance>(200, "The instance")
               .refuses({404}));
  add_call(router, api, "GET", base, list,
           About("listInstances", "instances", "The caller's instances, newest first")
               .query("state",
                      words_schema({"created", "queued", "starting", "running", "stopping",
                                    "stopped", "failed", "released"}),
                      "only those in this state; released ones are listed only so")
               .paged()
               .answers_page<api::Instance>("A page of instances")
               .refuses({422}));
  auto create_call = [self = &api](ControlCore& core, const CallContext& call) {
    return create(self, core, call);
  };
  add_call(router, api, "POST", base, std::move(create_call),
           About("createInstance", "instances", "A new instance; it is not started yet")
               .takes<api::CreateInstance>()
               .answers<api::Instance>(202, "The instance; its image and disk are being made")
               .refuses({409, 422}));
  const auto add_verb = [&](const char* name, Verb verb, About about) {
    add_call(
        router, api, "POST", one + "/" + name,
        [verb](ControlCore& core, const CallContext& call) { return do_verb(verb, core, call); },
        about.takes<api::NoMembers>(false)
            .answers<api::Instance>(202, "The instance, on its way")
            .refuses({404, 409, 422}));
  };
  add_verb(
      "start", &ControlCore::start,
      About("startInstance", "instances", "Start it, or wait in line for a card").refuses({402}));
  add_verb("stop", &ControlCore::stop,
           About("stopInstance", "instances", "Stop it; a queued start is cancelled"));
  add_verb("release", &ControlCore::release,
           About("releaseInstance", "instances", "Stop it and delete its disk"));
  add_call(router, api, "GET", one + "/runs", runs,
           About("listRuns", "instances", "Its runs, from the first on")
               .answers_page<api::Run>("The runs")
               .refuses({404}));
  add_call(router, api, "GET", one + "/monitor", monitor,
           About("showMonitor", "instances", "What its cards and disk are doing now")
               .says("Figures that can't be told are null.")
               .answers<api::Monitor>(200, "The figures")
               .refuses({404}));
}

}  // namespace autodl
