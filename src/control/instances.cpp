// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What users ask of instances: create, start, stop, release. A command checks everything first and
// changes memory only when nothing can fail any more.
#include <fmt/format.h>

#include <algorithm>

#include "control/detail/core_state.hpp"
#include "model/card_types.hpp"

namespace autodl {
namespace {

constexpr std::int64_t kSlotsMax = 1'000;

Error invalid(const char* code, std::string message, std::string remedy = {}) {
  return Error(ErrorKind::kInvalid, code, std::move(message), std::move(remedy));
}

}  // namespace

std::vector<std::string> ControlCore::State::known_card_types() const {
  std::set<std::string> names;
  for (const auto& [name, price] : config.prices_micro) names.insert(name);
  for (const auto& [name, rows] : prices) {
    if (name != kNoCardItem && name != kStorageItem) names.insert(name);
  }
  for (const auto& [id, node] : nodes) {
    for (const auto& card : node.observed.cards) names.insert(card.type);
  }
  return {names.begin(), names.end()};
}

Result<std::string> ControlCore::State::resolve_card(const CreateRequest& request) const {
  if (request.gpu_count == 0) return std::string();
  const auto known = known_card_types();
  const auto node = nodes.find(config.node);
  const auto total = [&](const std::string& type) {
    if (node == nodes.end()) return std::int64_t{-1};  // not heard yet
    return static_cast<std::int64_t>(
        std::count_if(node->second.observed.cards.begin(), node->second.observed.cards.end(),
                      [&](const ObservedCard& card) { return card.type == type; }));
  };
  auto meant = match_card_types(*request.gpu_type, known);
  if (meant.size() > 1 && node != nodes.end()) {
    std::erase_if(meant, [&](const std::string& type) { return total(type) == 0; });
  }
  if (meant.size() != 1) {
    auto near = meant.empty() ? near_names(*request.gpu_type, known) : meant;
    if (near.empty()) near = known;
    return invalid("unknown_card",
                   fmt::format("gpu_type '{}' {}", *request.gpu_type,
                               meant.size() > 1 ? "means more than one card" : "is not known here"),
                   near.empty() ? "this installation has no cards"
                                : fmt::format("did you mean {}?", fmt::join(near, " or ")));
  }
  if (!price_now(meant[0])) {
    return invalid("unknown_card", fmt::format("{} has no price here", meant[0]),
                   "the operator sets one: autodl admin price set");
  }
  if (const auto count = total(meant[0]); count >= 0 && request.gpu_count > count) {
    return invalid(
        "bad_gpu_count",
        fmt::format("gpu_count is {}; the node has {} {}", request.gpu_count, count, meant[0]),
        "ask for fewer cards");
  }
  return meant[0];
}

Status ControlCore::State::resolve_image(const CreateRequest& request, InstanceRow& row) const {
  std::vector<std::string> present;
  int cuda = 0;
  if (const auto node = nodes.find(config.node); node != nodes.end()) {
    for (const auto& image : node->second.observed.images) present.push_back(image.reference);
    if (!node->second.observed.simulated_cards) cuda = node->second.observed.cuda_version;
  }
  const auto alias = image_aliases.find(request.image);
  const bool known = alias != image_aliases.end() && !alias->second.reference.empty();
  const std::string meant = known ? alias->second.reference : request.image;
  ADL_TRY(resolved, catalogue.resolve(meant, cuda, present));
  if (resolved.loses_cuda && cuda > 0 && request.gpu_count > 0 && !request.allow_cpu_image) {
    return invalid("cpu_image_refused",
                   fmt::format("'{}' would be replaced by {}, which has no CUDA", request.image,
                               resolved.reference),
                   "name another image, or pass allow_cpu_image=True");
  }
  row.image = request.image;
  row.image_resolved = resolved.reference;
  row.substituted = resolved.substituted;
  return {};
}

Result<std::string> ControlCore::State::pick_name(const AccountRow& account,
                                                  const CreateRequest& request) const {
  const auto taken = [&](const std::string& name) {
    return std::any_of(instances.begin(), instances.end(), [&](const auto& item) {
      return item.second.account == account.id && item.second.name == name &&
             item.second.state != InstanceState::kReleased;
    });
  };
  if (request.name) {
    if (!taken(*request.name)) return *request.name;
    return Error(ErrorKind::kConflict, "name_taken",
                 fmt::format("there is an instance '{}' already", *request.name),
                 "choose another name, or release that one");
  }
  std::int64_t number = account.names_given;
  std::string name;
  do {
    name = fmt::format("{:03}", ++number);
  } while (taken(name));
  return name;
}

// The lowest free port and slot; they stay the instance's until it is released.
Status ControlCore::State::lease_endpoint(InstanceRow& row) {
  std::int64_t port = config.port_first;
  while (ports_used.contains(port)) ++port;
  std::int64_t slot = 0;
  while (slots_used.contains(slot)) ++slot;
  if (port > config.port_last || slot >= kSlotsMax) {
    return Error(ErrorKind::kExhausted, "no_endpoint",
                 "all SSH ports or user ranges of this installation are in use",
                 "release instances that are not needed");
  }
  row.port = port;
  row.slot = slot;
  ports_used.insert(port);
  slots_used.insert(slot);
  return {};
}

Result<InstanceRow> ControlCore::State::prepare(const AccountId& account,
                                                const CreateRequest& request) {
  ADL_TRY_STATUS(validate(request));
  InstanceRow row;
  ADL_TRY_STATUS(check_instance_quota(accounts.at(account)));
  ADL_TRY(card, resolve_card(request));
  ADL_TRY_STATUS(resolve_image(request, row));
  ADL_TRY(name, pick_name(accounts.at(account), request));
  ADL_TRY_STATUS(lease_endpoint(row));  // the last that can fail
  if (!request.name) {
    accounts.at(account).names_given = std::stoll(name);
    dirty_accounts.insert(account);
  }
  row.id = InstanceId(ids.next());
  row.account = account;
  row.node = config.node;
  row.name = name;
  row.gpu_type = card;
  row.gpu_count = request.gpu_count;
  row.disk_bytes = request.disk_bytes;
  row.command = request.command;
  row.env = request.env;
  row.workdir = request.workdir;
  row.restart = *parse_restart_policy(request.restart);
  row.max_runtime_s = request.max_runtime_s;
  row.ssh_keys = request.ssh_keys;
  row.created_at = now();
  return row;
}

std::int64_t ControlCore::State::price_of(const InstanceRow& instance) const {
  return price_now(instance.gpu_count == 0 ? kNoCardItem : instance.gpu_type).value_or(0);
}

void ControlCore::State::set_state(InstanceRow& instance, InstanceState state, std::string reason,
                                   std::string remedy) {
  change(instance).state = state;
  instance.reason = std::move(reason);
  instance.remedy = std::move(remedy);
}

Status ControlCore::State::start(const RequestContext& context, InstanceRow& instance) {
  if (instance.state == InstanceState::kReleased || instance.release_asked) {
    return Error(ErrorKind::kConflict, "released", "the instance is released", "create another");
  }
  if (const RunRow* current = active_run(instance)) {
    const bool stopping = current->state == RunState::kStopping;
    return Error(ErrorKind::kConflict, stopping ? "still_stopping" : "already_running",
                 fmt::format("the instance is {}", to_string(instance.state)),
                 stopping ? "wait until it is stopped" : "");
  }
  const AccountRow& owner = accounts.at(instance.account);
  if (owner.disabled) return disabled_account();
  ADL_TRY_STATUS(check_card_quota(owner, instance.gpu_count));
  RunRow run;
  run.id = RunId(ids.next());
  run.instance = instance.id;
  run.account = instance.account;
  run.attempt = instance.run_count + 1;
  run.gpu_type = instance.gpu_type;
  run.gpu_count = instance.gpu_count;
  run.price_micro = price_of(instance);
  run.requested_at = now();
  ADL_TRY_STATUS(fund_start(run));
  change(instance).run = run.id;
  instance.run_count = run.attempt;
  runs_of[instance.id].push_back(run.id);
  active.insert(run.id);
  live[run.id] = RunLive{};
  change(runs[run.id] = run);
  set_state(instance, InstanceState::kQueued);
  emit(instance, run.id,
       {"start_requested", "start requested", "{}", context.actor, context.request_id});
  emit(instance, run.id, {"queued", "waiting for a place"});
  schedule();
  return {};
}

void ControlCore::State::ask_stop(const RequestContext& context, InstanceRow& instance, StopBy by,
                                  std::string message) {
  RunRow* run = active_run(instance);
  if (run == nullptr || run->stop) return;  // nothing runs, or it was asked before
  if (run->state == RunState::kQueued) return end_queued(context, *run);
  change(*run).stop = by;
  run->stop_at_ms = estimate_ms(*run);
  if (run->state == RunState::kStarting) run->stop_at_ms = 0;
  run->state = RunState::kStopping;
  set_state(instance, InstanceState::kStopping, message);
  emit(instance, run->id,
       {"stop_requested", std::move(message), json_object({{"by", to_string(by)}}), context.actor,
        context.request_id});
  touch_desired();
  live[run->id].told_revision = revision;
}

void ControlCore::State::release(const RequestContext& context, InstanceRow& instance) {
  if (instance.release_asked) return;
  ask_stop(context, instance, StopBy::kUser, "being released");
  change(instance).release_asked = true;
  instance.reason = "being released";
  touch_desired();
}

Result<InstanceView> ControlCore::create_instance(const RequestContext& context,
                                                  const AccountId& account,
                                                  const CreateRequest& request) {
  if (!state_->accounts.contains(account)) {
    return Error(ErrorKind::kNotFound, "no_such_account", "there is no such account");
  }
  ADL_TRY(row, state_->prepare(account, request));
  InstanceRow& kept = state_->change(state_->instances[row.id] = row);
  state_->emit(kept, {},
               {"created", fmt::format("instance {} created", kept.name), "{}", context.actor,
                context.request_id});
  if (kept.substituted) {
    state_->emit(kept, {},
                 {"image_substituted",
                  fmt::format("image {} stands for {}", kept.image_resolved, kept.image),
                  json_object({{"asked", kept.image}, {"used", kept.image_resolved}})});
  }
  state_->touch_desired();
  return state_->view(kept);
}

Result<InstanceView> ControlCore::start(const RequestContext& context, const AccountId& account,
                                        std::string_view key) {
  ADL_TRY(id, state_->find(account, key));
  ADL_TRY_STATUS(state_->start(context, state_->instances.at(id)));
  return state_->view(state_->instances.at(id));
}

Result<InstanceView> ControlCore::stop(const RequestContext& context, const AccountId& account,
                                       std::string_view key) {
  ADL_TRY(id, state_->find(account, key));
  state_->ask_stop(context, state_->instances.at(id), StopBy::kUser, "stop requested");
  return state_->view(state_->instances.at(id));
}

Result<InstanceView> ControlCore::release(const RequestContext& context, const AccountId& account,
                                          std::string_view key) {
  ADL_TRY(id, state_->find(account, key));
  state_->release(context, state_->instances.at(id));
  return state_->view(state_->instances.at(id));
}

Status ControlCore::note(const RequestContext& context, const AccountId& account,
                         std::string_view key, std::string_view type, std::string_view data_json,
                         std::string_view message) {
  ADL_TRY(id, state_->find(account, key));
  const InstanceRow& instance = state_->instances.at(id);
  state_->emit(instance, instance.run,
               {type == "uploaded" ? "uploaded" : "warning", std::string(message),
                std::string(data_json), context.actor, context.request_id});
  return {};
}

std::vector<std::string> ControlCore::candidates(std::string_view code,
                                                 const CreateRequest& request) const {
  if (code == "unknown_image") return state_->catalogue.candidates(request.image);
  if (code != "unknown_card" || !request.gpu_type) return {};
  const auto known = state_->known_card_types();
  auto out = match_card_types(*request.gpu_type, known);
  if (out.empty()) out = near_names(*request.gpu_type, known);
  return out.empty() ? known : out;
}

}  // namespace autodl
