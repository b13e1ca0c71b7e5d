// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "agent/action_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "agent/cards.hpp"
#include "agent/host_key.hpp"
#include "base/crash_point.hpp"
#include "base/log.hpp"
#include "wire/proxy_v2.hpp"

namespace autodl {

namespace json = boost::json;

namespace {

constexpr Millis kConnectLimit{2'000};
constexpr Millis kInventoryLimit{5'000};

std::string to_hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

Result<std::string> from_hex(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    out.push_back(static_cast<char>(digit(text[i]) * 16 + digit(text[i + 1])));
  }
  if (out.size() != kRunKeyBytes)
    return Error(ErrorKind::kInternal, "bad_run_file", "the run's key has the wrong length");
  return out;
}

Error bad_run_file(const InstanceId& id, std::string_view why) {
  return Error(ErrorKind::kInternal, "bad_run_file",
               fmt::format("run.json of instance {}: {}", id.str(), why));
}

}  // namespace

std::string safe_hostname(const std::string& name) {
  std::string safe;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain)
      safe += c;
    else if (!safe.empty() && safe.back() != '-')
      safe += '-';
    if (safe.size() == 63) break;
  }
  while (!safe.empty() && safe.back() == '-') safe.pop_back();
  return safe.empty() ? "instance" : safe;
}

std::vector<AccessKey> to_access_keys(const std::vector<std::string>& lines) {
  std::vector<AccessKey> keys;
  for (const auto& line : lines)
    if (!line.empty() && line.find('\n') == std::string::npos) keys.push_back({line, {}});
  return keys;
}

ActionResult ActionRunner::run(const Action& action) {
  ActionResult result;
  result.kind = action.kind;
  const auto name = action.instance.str();
  const auto record = [&](const std::vector<Fact>& facts) -> Status {
    std::vector<std::string> lines;
    for (const auto& fact : facts) lines.push_back(encode_fact(fact));
    return parts_.journal.append(name, lines);
  };
  result.status = record(action.before);
  if (!result.status.ok()) return result;
  result.recorded = true;
  result.after = action.after;
  result.status = effect(action, result);
  result.at = parts_.clock.steady_now();
  result.utc = parts_.clock.utc_now();
  if (result.status.ok()) {
    result.status = record(result.after);
  }
  if (!result.status.ok()) result.after.clear();
  return result;
}

Status ActionRunner::effect(const Action& action, ActionResult& result) {
  auto& runtime = parts_.runtime;
  const auto& id = action.instance;
  switch (action.kind) {
    case ActionKind::kRecord: return {};
    case ActionKind::kEnsureImage: return ensure_image(action, result);
    case ActionKind::kEnsureDisk: return ensure_disk(action, result);
    case ActionKind::kEnsureRoot: return runtime.ensure_root({id, action.digest, action.slot});
    case ActionKind::kCreate: return create(action);
    case ActionKind::kStart: return start(action);
    case ActionKind::kConnect: return connect(action, result);
    case ActionKind::kGo:
      crash_point("agent.go.before");
      ADL_TRY_STATUS(parts_.links.go(id, action.run));
      crash_point("agent.go.after");
      return {};
    case ActionKind::kKeys: return parts_.links.keys(id, to_access_keys(action.keys));
    case ActionKind::kStop: return parts_.links.stop(id, {action.run, action.grace_ms});
    case ActionKind::kKill: return runtime.kill_container(id);
    case ActionKind::kInspect: {
      ADL_TRY(status, runtime.status(id));
      result.container = std::move(status);
      return {};
    }
    case ActionKind::kRemove:
      parts_.links.close(id);
      ADL_TRY_STATUS(runtime.remove_container(id));
      return parts_.cards.release(id, action.cards);
    case ActionKind::kProve: return prove(action, result);
    case ActionKind::kDestroy:
      parts_.links.close(id);
      ADL_TRY_STATUS(runtime.destroy(id));
      return parts_.files.remove_all(id);
    case ActionKind::kForget:
      ADL_TRY_STATUS(parts_.files.remove_all(id));
      return parts_.journal.remove(id.str());
  }
  return {};
}

Status ActionRunner::ensure_image(const Action& action, ActionResult& result) {
  const auto progress = [&](std::string phase, std::optional<int> percent) {
    if (events_.progress) events_.progress(action.instance, std::move(phase), percent);
  };
  // A digest that control knows is what the instance was made from: a tag may have moved since.
  if (!action.digest.empty()) {
    auto pinned = parts_.runtime.ensure_image(action.digest, progress);
    if (pinned.ok()) {
      result.image = std::move(pinned).value();
      return {};
    }
  }
  ADL_TRY(image, parts_.runtime.ensure_image(action.reference, progress));
  result.image = std::move(image);
  return {};
}

Result<std::string> ActionRunner::host_key_of(const InstanceId& id) {
  ADL_TRY(stored, parts_.files.get(id, "host_key"));
  if (stored) return *stored;
  HostKey key;
  {
    const std::lock_guard lock(random_mutex_);
    key = make_host_key(parts_.random);
  }
  // Line one: the public key; the rest: the private one.
  auto text = key.public_line + "\n" + key.private_pem;
  ADL_TRY_STATUS(parts_.files.put(id, "host_key", text));
  return text;
}

Status ActionRunner::ensure_disk(const Action& action, ActionResult& result) {
  const auto& id = action.instance;
  ADL_TRY(host_key, host_key_of(id));
  json::object env;
  for (const auto& [key, value] : action.image_env) env[key] = value;
  ADL_TRY_STATUS(parts_.files.put(id, "image.json", json::serialize(json::object{{"env", env}})));
  ADL_TRY_STATUS(parts_.runtime.ensure_disk({id, action.disk_bytes, action.slot}));
  ADL_TRY_STATUS(parts_.runtime.ensure_root({id, action.digest, action.slot}));
  for (auto& fact : result.after) fact.host_key = host_key.substr(0, host_key.find('\n'));
  return {};
}

std::string ActionRunner::cpuset_of(const std::vector<CardId>& cards) {
  if (cards.empty() || split_.share_processors) return {};
  const auto inventory = parts_.inventory.query(kInventoryLimit);
  if (!inventory.ok()) return {};
  std::vector<int> places;
  for (std::size_t i = 0; i < inventory->cards.size(); ++i)
    if (std::find(cards.begin(), cards.end(), inventory->cards[i].id) != cards.end())
      places.push_back(static_cast<int>(i));
  std::string set;
  for (const int place : places) {
    const auto part = split_.cpuset_for(place, 1);
    if (part.empty()) return {};
    set += (set.empty() ? "" : ",") + part;
  }
  return set;
}

Status ActionRunner::create(const Action& action) {
  const auto& id = action.instance;
  if (!action.desired)
    return Error(ErrorKind::kInternal, "no_run", "a container without a run was asked for");
  const auto& desired = *action.desired;
  ADL_TRY(host_key, host_key_of(id));
  ADL_TRY(image, parts_.files.get(id, "image.json"));
  InitSetup setup;
  setup.run = action.run;
  setup.instance = id;
  setup.name = action.name;
  if (image) {
    boost::system::error_code failed;
    const auto parsed = json::parse(*image, failed);
    if (!failed && parsed.is_object())
      if (const auto* env = parsed.get_object().if_contains("env"); env && env->is_object())
        for (const auto& [key, value] : env->get_object())
          if (value.is_string()) setup.env[std::string(key)] = std::string(value.get_string());
  }
  for (const auto& [key, value] : desired.env) setup.env[key] = value;
  setup.keys = to_access_keys(action.keys);
  setup.host_key = host_key.substr(host_key.find('\n') + 1);
  setup.command = desired.command;
  setup.workdir = desired.workdir;
  setup.cards = !action.cards.empty();
  std::string key(kRunKeyBytes, '\0');
  {
    const std::lock_guard lock(random_mutex_);
    parts_.random.fill({reinterpret_cast<unsigned char*>(key.data()), key.size()});
  }
  // A container that a cut-off call left behind has the old key: it is made again.
  ADL_TRY_STATUS(parts_.runtime.remove_container(id));
  ADL_TRY_STATUS(parts_.files.put(
      id, "run.json",
      json::serialize(json::object{
          {"run", action.run.str()}, {"key", to_hex(key)}, {"setup", to_json(setup)}})));
  ADL_TRY(delivery, parts_.cards.prepare(id, action.cards));
  ContainerSpec spec;
  spec.id = id;
  spec.run = action.run;
  spec.slot = action.slot;
  spec.hostname = safe_hostname(action.name);
  spec.run_key = key;
  for (const auto& device : delivery.devices)
    spec.devices.push_back({device.host_path, device.container_path, true, false});
  for (const auto& mount : delivery.mounts)
    spec.devices.push_back({mount.host_path, mount.container_path, false, true});
  spec.cpuset = cpuset_of(action.cards);
  spec.memory_bytes = split_.memory_for(action.cards.size());
  return parts_.runtime.create_container(spec);
}

void ActionRunner::watch(const InstanceId& id) {
  auto pidfd = parts_.runtime.watch(id);
  if (pidfd.ok() && events_.watch) events_.watch(id, std::move(pidfd).value());
}

Status ActionRunner::start(const Action& action) {
  ADL_TRY_STATUS(parts_.runtime.start_container(action.instance, action.run));
  watch(action.instance);
  return {};
}

Result<InitTarget> ActionRunner::stored_target(const Action& action) {
  const auto& id = action.instance;
  ADL_TRY(stored, parts_.files.get(id, "run.json"));
  if (!stored) return bad_run_file(id, "is missing");
  boost::system::error_code failed;
  const auto parsed = json::parse(*stored, failed);
  if (failed || !parsed.is_object()) return bad_run_file(id, "no JSON object");
  const auto text = [&](std::string_view key) {
    const auto* value = parsed.get_object().if_contains(key);
    return value != nullptr && value->is_string() ? std::string(value->get_string())
                                                  : std::string();
  };
  if (text("run") != action.run.str()) return bad_run_file(id, "is of another run");
  InitTarget target;
  target.instance = id;
  target.run = action.run;
  target.address = parts_.runtime.address_of(action.slot);
  ADL_TRY(key, from_hex(text("key")));
  target.key = std::move(key);
  ADL_TRY(setup, parse_init_setup(text("setup")));
  target.setup = std::move(setup);
  return target;
}

Result<std::string> ActionRunner::run_key(const InstanceId& instance, const RunId& run) {
  Action action;
  action.instance = instance;
  action.run = run;
  ADL_TRY(target, stored_target(action));
  return target.key;
}

Status ActionRunner::connect(const Action& action, ActionResult& result) {
  ADL_TRY(target, stored_target(action));
  if (!action.keys.empty()) target.setup.keys = to_access_keys(action.keys);
  if (action.watch) watch(action.instance);
  ADL_TRY(ready, parts_.links.connect(target, kConnectLimit));
  if (ready.run != action.run)
    return Error(ErrorKind::kUnavailable, "other_run", "init answered for another run");
  result.at = parts_.clock.steady_now();
  return {};
}

Status ActionRunner::prove(const Action& action, ActionResult& result) {
  ADL_TRY(inventory, parts_.inventory.query(kInventoryLimit));
  CardTable table;
  table.on_inventory(inventory);
  result.inventory = std::move(inventory);
  return table.check_clean(action.cards);
}

}  // namespace autodl
