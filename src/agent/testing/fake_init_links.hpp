// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// FakeInitLinks: an init that answers at once, for tests and the simulation. Counts how often each
// run's command was started: a second go of the same run starts nothing, as init does.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "agent/init_links.hpp"

namespace autodl {

class FakeInitLinks final : public InitLinks {
 public:
  Result<InitReady> connect(const InitTarget& target, Millis) override {
    ++connects;
    if (next_error) return *std::exchange(next_error, std::nullopt);
    if (reachable && !reachable(target.instance))
      return Error(ErrorKind::kUnavailable, "not_ready", "init does not answer yet");
    open.insert(target.instance);
    last_setup[target.instance] = target.setup;
    return InitReady{target.run, "SSH-2.0-fake"};
  }
  Status go(const InstanceId& instance, const RunId& run) override {
    ADL_TRY_STATUS(check(instance));
    if (gone_to[instance] != run) {
      gone_to[instance] = run;
      ++starts[run];
      if (on_start) on_start(instance, run);
    }
    return {};
  }
  Status stop(const InstanceId& instance, const InitStop& wanted) override {
    ADL_TRY_STATUS(check(instance));
    stops[instance] = wanted;
    if (on_stop) on_stop(instance, wanted);
    return {};
  }
  Status keys(const InstanceId& instance, const std::vector<AccessKey>& wanted) override {
    ADL_TRY_STATUS(check(instance));
    last_keys[instance] = wanted;
    return {};
  }
  Status samples(const InstanceId& instance, const std::string&) override {
    return check(instance);
  }
  void close(const InstanceId& instance) override { open.erase(instance); }

  std::function<bool(const InstanceId&)> reachable;  // whether PID 1 runs; unset: always
  std::function<void(const InstanceId&, const RunId&)> on_start;
  std::function<void(const InstanceId&, const InitStop&)> on_stop;
  std::optional<Error> next_error;  // answered once, by connect
  std::set<InstanceId> open;        // node restarted: clear()
  std::map<InstanceId, RunId> gone_to;
  std::map<RunId, int> starts;
  std::map<InstanceId, InitStop> stops;
  std::map<InstanceId, InitSetup> last_setup;
  std::map<InstanceId, std::vector<AccessKey>> last_keys;
  int connects = 0;

 private:
  Status check(const InstanceId& instance) const {
    if (open.contains(instance)) return {};
    return Error(ErrorKind::kUnavailable, "init_gone", "no control stream to init");
  }
};

}  // namespace autodl
