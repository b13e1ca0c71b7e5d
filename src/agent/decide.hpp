// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// next_action: the one decision of a node for an instance. Pure: desired, facts and what is live
// now → the next step, or nothing to do. AgentCore calls it whenever no step of the instance is in
// flight; every path to an effect goes through here.
//
// Rules in order: damaged journals are left alone; an active run is brought forward or to its end
// first; only a tombstone destroys; a run whose id was ever used here is never begun again; a run
// with `ready` or `started` and no container is lost.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "agent/actions.hpp"
#include "agent/cards.hpp"
#include "agent/facts.hpp"
#include "agent/resources.hpp"
#include "model/desired.hpp"

namespace autodl {

// What is true now and is in no journal.
struct Live {
  std::optional<ImageInfo> image;  // as ensured in this process
  bool root_ok = false;            // mounted
  ContainerPhase container = ContainerPhase::kNone;
  bool connected = false;  // the control stream to init is open and set up
  bool go_sent = false;    // on this connection
  bool shutdown = false;   // typed inside
  bool removed = false;    // container of the ended run removed
  bool exit_seen = false;  // PID 1's pidfd fired
  std::optional<SteadyTime> exit_at;
  std::optional<ContainerStatus> end;  // of the container that exited
  std::optional<SteadyTime> ready_at;  // init said ready; not journalled yet
  UtcTime ready_utc{};
  std::optional<SteadyTime> ended_at;  // init said that the command ended
  std::optional<SteadyTime> stop_sent, kill_sent, inspected, prove_since;
  std::int64_t stop_grace_ms = 0;
  std::vector<std::string> keys_sent;
  std::string start_error;  // gave up before ready
  SteadyTime desired_at{};  // when the desired set in force was taken in
  std::optional<Moment> lease_recorded;
  int failures = 0;  // of the present step, in a row
  SteadyTime not_before{};
};

struct Context {
  SteadyTime now{};
  std::int64_t utc_now_ms = 0;
  std::string boot_id;
  bool desired_known = false;  // a desired set was taken since the start of this process
  const CardTable* cards = nullptr;
  const ResourceSplit* split = nullptr;
};

std::optional<Action> next_action(const InstanceId& id, const DesiredInstance* desired,
                                  const InstanceFacts& facts, const Live& live,
                                  const Context& context);

// How long the run has been running, as far as is known: a container that is seen to have ended
// (or to be gone) adds nothing any more, recorded or not.
std::int64_t running_ms_seen(const RunFacts& run, const Live& live, const Context& context);

// The end of what is paid, on the steady clock, as told at that moment.
std::int64_t lease_end_ms(const DesiredRun& run, SteadyTime told_at);

// Whether the lease in force ends before the one in the journal: a restarted node would run longer
// than is paid. Until it is recorded the desired set that shortened it is not acknowledged.
bool lease_to_shorten(const RunFacts& run, const Live& live);

// Why and how gently a run is to end; none: it goes on.
struct StopWanted {
  StopBy by = StopBy::kUser;
  std::int64_t grace_ms = 10'000;
  bool shutdown = false;
};
std::optional<StopWanted> stop_wanted(const DesiredInstance* desired, const RunFacts& run,
                                      const Live& live, const Context& context);

}  // namespace autodl
