// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Facts: what a node's journal says of an instance. A fact is written before the effect it names
// (created, started) or as soon as it is known (ready, exited). State is derived by apply(), a pure
// function; facts that repeat change nothing.
//
//   disk_made
//   granted(run, cards) created(run) ─▶ ready(run) started(run) ─▶ [stop_asked(run)] ─▶ exited(run)
//      lease(run)* at any time in between                              ─▶ released(run)
//   destroyed
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "model/observed.hpp"

namespace autodl {

enum class FactKind {
  kDiskMade,   // disk and root exist: slot, disk_bytes, digest, host_key
  kGranted,    // run holds cards
  kCreated,    // a container for run is about to be made
  kReady,      // run is ready: moment, utc_ms
  kStarted,    // the command is about to be started: at most once
  kLease,      // paid until lease_end_ms of this boot; alive with running_ms at that moment
  kStopAsked,  // by; shutdown
  kExited,     // result, running_ms: the container has ended, or the run never began
  kReleased,   // container gone, cards proven free
  kDestroyed,  // nothing of the instance is left
};

struct Fact {
  FactKind kind = FactKind::kDiskMade;
  RunId run;
  std::vector<CardId> cards;
  std::uint32_t slot = 0;
  std::int64_t disk_bytes = 0;
  std::string digest;
  std::string host_key;
  std::string boot_id;
  std::int64_t steady_ms = 0;
  std::int64_t utc_ms = 0;
  std::int64_t lease_end_ms = 0;
  std::int64_t running_ms = 0;
  StopBy by = StopBy::kUser;
  bool shutdown = false;
  RunResult result;
  bool operator==(const Fact&) const = default;
};

// A moment on the steady clock of one boot.
struct Moment {
  std::string boot_id;
  std::int64_t steady_ms = 0;
  bool operator==(const Moment&) const = default;
};

struct RunFacts {
  RunId id;
  std::vector<CardId> cards;
  bool created = false;
  std::optional<Moment> ready;
  std::int64_t ready_utc_ms = 0;
  bool started = false;
  std::optional<Moment> lease;  // steady_ms: the end of what is paid
  std::int64_t alive_ms = 0;    // running time last journalled
  std::optional<StopBy> stop_asked;
  bool shutdown = false;            // the stop was typed inside
  std::optional<RunResult> result;  // of kExited
  std::int64_t running_ms = 0;      // with result
  bool released = false;

  bool active() const { return !released; }
  bool operator==(const RunFacts&) const = default;
};

struct EndedRun {
  RunResult result;
  std::int64_t running_ms = 0;
  std::optional<std::int64_t> ready_utc_ms;
  bool operator==(const EndedRun&) const = default;
};

struct InstanceFacts {
  bool disk_made = false;
  std::uint32_t slot = 0;
  std::int64_t disk_bytes = 0;
  std::string digest;
  std::string host_key;
  std::optional<RunFacts> run;     // the last one
  std::map<RunId, EndedRun> past;  // all that are released: a run id is never used twice
  bool destroyed = false;
  bool operator==(const InstanceFacts&) const = default;
};

void apply(InstanceFacts& facts, const Fact& fact);
// The shortest list of facts that gives these again (for Journal::rewrite).
std::vector<Fact> to_facts(const InstanceFacts& facts);

std::string encode_fact(const Fact& fact);
Result<Fact> decode_fact(std::string_view text);  // kInternal bad_fact

}  // namespace autodl
