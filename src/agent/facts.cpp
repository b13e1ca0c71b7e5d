// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "agent/facts.hpp"

#include <fmt/format.h>

#include <array>
#include <boost/json.hpp>
#include <utility>

namespace autodl {

namespace json = boost::json;

namespace {

constexpr std::array<std::pair<FactKind, std::string_view>, 10> kNames{{
    {FactKind::kDiskMade, "disk_made"},
    {FactKind::kGranted, "granted"},
    {FactKind::kCreated, "created"},
    {FactKind::kReady, "ready"},
    {FactKind::kStarted, "started"},
    {FactKind::kLease, "lease"},
    {FactKind::kStopAsked, "stop_asked"},
    {FactKind::kExited, "exited"},
    {FactKind::kReleased, "released"},
    {FactKind::kDestroyed, "destroyed"},
}};

json::object print_result(const RunResult& result) {
  json::object out{{"started", result.started}, {"reason", result.reason}};
  if (result.lost) out["lost"] = true;
  if (result.exit_code) out["exit_code"] = *result.exit_code;
  if (result.signal) out["signal"] = *result.signal;
  if (result.out_of_memory) out["out_of_memory"] = true;
  if (result.stopped_by) out["stopped_by"] = to_string(*result.stopped_by);
  if (result.shutdown_inside) out["shutdown_inside"] = true;
  if (result.start_failed) out["start_failed"] = true;
  return out;
}

// Reads members of a record that this program wrote; a wrong type makes the record bad.
class Reader {
 public:
  explicit Reader(const json::object& object) : object_(object) {}
  std::string text(std::string_view key) {
    const auto* value = object_.if_contains(key);
    if (value == nullptr) return {};
    if (!value->is_string()) return fail(std::string());
    return std::string(value->get_string());
  }
  std::int64_t number(std::string_view key) {
    const auto* value = object_.if_contains(key);
    if (value == nullptr) return 0;
    if (!value->is_int64()) return fail(std::int64_t{0});
    return value->get_int64();
  }
  std::optional<int> small(std::string_view key) {
    if (!object_.contains(key)) return std::nullopt;
    return static_cast<int>(number(key));
  }
  bool flag(std::string_view key) {
    const auto* value = object_.if_contains(key);
    return value != nullptr && value->is_bool() && value->get_bool();
  }
  bool bad() const { return bad_; }
  template <class T>
  T fail(T value) {
    bad_ = true;
    return value;
  }

 private:
  const json::object& object_;
  bool bad_ = false;
};

RunResult read_result(const json::object& object, Reader& outer) {
  Reader in(object);
  RunResult result;
  result.started = in.flag("started");
  result.lost = in.flag("lost");
  result.exit_code = in.small("exit_code");
  result.signal = in.small("signal");
  result.out_of_memory = in.flag("out_of_memory");
  result.reason = in.text("reason");
  if (object.contains("stopped_by")) result.stopped_by = parse_stop_by(in.text("stopped_by"));
  result.shutdown_inside = in.flag("shutdown_inside");
  result.start_failed = in.flag("start_failed");
  if (in.bad()) outer.fail(0);
  return result;
}

}  // namespace

std::string encode_fact(const Fact& fact) {
  std::string_view name;
  for (const auto& [kind, text] : kNames)
    if (kind == fact.kind) name = text;
  json::object out{{"fact", name}};
  if (!fact.run.empty()) out["run"] = fact.run.str();
  if (!fact.cards.empty()) {
    json::array cards;
    for (const auto& card : fact.cards) cards.emplace_back(card.str());
    out["cards"] = std::move(cards);
  }
  const auto put_text = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) out[key] = value;
  };
  const auto put_number = [&](std::string_view key, std::int64_t value) {
    if (value != 0) out[key] = value;
  };
  put_number("slot", fact.slot);
  put_number("disk_bytes", fact.disk_bytes);
  put_text("digest", fact.digest);
  put_text("host_key", fact.host_key);
  put_text("boot", fact.boot_id);
  put_number("steady_ms", fact.steady_ms);
  put_number("utc_ms", fact.utc_ms);
  put_number("lease_end_ms", fact.lease_end_ms);
  put_number("running_ms", fact.running_ms);
  if (fact.kind == FactKind::kStopAsked) out["by"] = to_string(fact.by);
  if (fact.shutdown) out["shutdown"] = true;
  if (fact.kind == FactKind::kExited) out["result"] = print_result(fact.result);
  return json::serialize(out);
}

Result<Fact> decode_fact(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return Error(ErrorKind::kInternal, "bad_fact", fmt::format("journal record: {}", why));
  };
  boost::system::error_code failed;
  const auto parsed = json::parse(text, failed);
  if (failed || !parsed.is_object()) return bad("not a JSON object");
  const auto& object = parsed.get_object();
  Reader in(object);
  Fact fact;
  const auto name = in.text("fact");
  bool known = false;
  for (const auto& [kind, word] : kNames) {
    if (word != name) continue;
    fact.kind = kind;
    known = true;
  }
  if (!known) return bad(fmt::format("unknown fact '{}'", name));
  fact.run = RunId(in.text("run"));
  if (const auto* cards = object.if_contains("cards")) {
    if (!cards->is_array()) return bad("cards is no array");
    for (const auto& card : cards->get_array()) {
      if (!card.is_string()) return bad("a card is no text");
      fact.cards.emplace_back(std::string(card.get_string()));
    }
  }
  fact.slot = static_cast<std::uint32_t>(in.number("slot"));
  fact.disk_bytes = in.number("disk_bytes");
  fact.digest = in.text("digest");
  fact.host_key = in.text("host_key");
  fact.boot_id = in.text("boot");
  fact.steady_ms = in.number("steady_ms");
  fact.utc_ms = in.number("utc_ms");
  fact.lease_end_ms = in.number("lease_end_ms");
  fact.running_ms = in.number("running_ms");
  if (object.contains("by")) fact.by = parse_stop_by(in.text("by")).value_or(StopBy::kPlatform);
  fact.shutdown = in.flag("shutdown");
  if (const auto* result = object.if_contains("result")) {
    if (!result->is_object()) return bad("result is no object");
    fact.result = read_result(result->get_object(), in);
  }
  if (in.bad()) return bad("a member has the wrong type");
  return fact;
}

void apply(InstanceFacts& facts, const Fact& fact) {
  switch (fact.kind) {
    case FactKind::kDiskMade:
      facts.disk_made = true;
      facts.slot = fact.slot;
      facts.disk_bytes = fact.disk_bytes;
      facts.digest = fact.digest;
      facts.host_key = fact.host_key;
      return;
    case FactKind::kDestroyed: facts.destroyed = true; return;
    default: break;
  }
  if (!facts.run || facts.run->id != fact.run) {
    if (facts.past.contains(fact.run)) return;
    facts.run = RunFacts{.id = fact.run};
  }
  auto& run = *facts.run;
  switch (fact.kind) {
    case FactKind::kGranted: run.cards = fact.cards; break;
    case FactKind::kCreated: run.created = true; break;
    case FactKind::kReady:
      if (run.ready) break;
      run.ready = Moment{fact.boot_id, fact.steady_ms};
      run.ready_utc_ms = fact.utc_ms;
      break;
    case FactKind::kStarted: run.started = true; break;
    case FactKind::kLease:
      run.lease = Moment{fact.boot_id, fact.lease_end_ms};
      run.alive_ms = std::max(run.alive_ms, fact.running_ms);
      break;
    case FactKind::kStopAsked:
      if (run.stop_asked) break;
      run.stop_asked = fact.by;
      run.shutdown = fact.shutdown;
      break;
    case FactKind::kExited:
      if (run.result) break;
      run.result = fact.result;
      run.running_ms = fact.running_ms;
      break;
    case FactKind::kReleased: {
      run.released = true;
      EndedRun ended{run.result.value_or(RunResult{}), run.running_ms, std::nullopt};
      if (run.ready) ended.ready_utc_ms = run.ready_utc_ms;
      facts.past[run.id] = std::move(ended);
      break;
    }
    default: break;
  }
}

namespace {

void add_run(std::vector<Fact>& out, const RunFacts& run) {
  const auto make = [&](FactKind kind) {
    Fact fact;
    fact.kind = kind;
    fact.run = run.id;
    return fact;
  };
  auto granted = make(FactKind::kGranted);
  granted.cards = run.cards;
  out.push_back(std::move(granted));
  if (run.created) out.push_back(make(FactKind::kCreated));
  if (run.ready) {
    auto ready = make(FactKind::kReady);
    ready.boot_id = run.ready->boot_id;
    ready.steady_ms = run.ready->steady_ms;
    ready.utc_ms = run.ready_utc_ms;
    out.push_back(std::move(ready));
  }
  if (run.started) out.push_back(make(FactKind::kStarted));
  if (run.lease) {
    auto lease = make(FactKind::kLease);
    lease.boot_id = run.lease->boot_id;
    lease.lease_end_ms = run.lease->steady_ms;
    lease.running_ms = run.alive_ms;
    out.push_back(std::move(lease));
  }
  if (run.stop_asked) {
    auto stop = make(FactKind::kStopAsked);
    stop.by = *run.stop_asked;
    stop.shutdown = run.shutdown;
    out.push_back(std::move(stop));
  }
  if (run.result) {
    auto exited = make(FactKind::kExited);
    exited.result = *run.result;
    exited.running_ms = run.running_ms;
    out.push_back(std::move(exited));
  }
  if (run.released) out.push_back(make(FactKind::kReleased));
}

}  // namespace

std::vector<Fact> to_facts(const InstanceFacts& facts) {
  std::vector<Fact> out;
  if (facts.disk_made) {
    Fact disk;
    disk.kind = FactKind::kDiskMade;
    disk.slot = facts.slot;
    disk.disk_bytes = facts.disk_bytes;
    disk.digest = facts.digest;
    disk.host_key = facts.host_key;
    out.push_back(std::move(disk));
  }
  for (const auto& [id, ended] : facts.past) {
    if (facts.run && facts.run->id == id) continue;
    RunFacts run{.id = id};
    run.result = ended.result;
    run.running_ms = ended.running_ms;
    run.released = true;
    if (ended.ready_utc_ms) {
      run.ready = Moment{};
      run.ready_utc_ms = *ended.ready_utc_ms;
    }
    add_run(out, run);
  }
  if (facts.run) add_run(out, *facts.run);
  if (facts.destroyed) {
    Fact destroyed;
    destroyed.kind = FactKind::kDestroyed;
    out.push_back(std::move(destroyed));
  }
  return out;
}

}  // namespace autodl
