// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What a node sees: its whole observed set, sent at each change and every 2 s.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "model/states.hpp"

namespace autodl {

enum class ImageState { kUnknown, kPulling, kReady, kFailed };
enum class DiskState { kNone, kReady, kFailed };

enum class RunPhase {
  kAbsent,    // not begun here
  kStarting,  // being made
  kRunning,   // ready journalled; the clock of the bill runs
  kStopping,  // staged signals
  kEnded,     // container gone, cards released (proven); result is set
};

// How a run ended, as the node knows it.
struct RunResult {
  bool started = false;  // the command was started (journalled)
  bool lost = false;     // started, and then neither container nor exit record
  std::optional<int> exit_code;
  std::optional<int> signal;
  bool out_of_memory = false;
  std::string reason;                // for the user: "memory limit of 8 GiB exceeded"
  std::optional<StopBy> stopped_by;  // lease: the node itself ended it at paid_until
  bool shutdown_inside = false;      // the tenant typed shutdown
  bool start_failed = false;         // never got ready; reason says why
  bool operator==(const RunResult&) const = default;
};

struct ObservedRun {
  RunId id;
  RunPhase phase = RunPhase::kAbsent;
  std::optional<std::int64_t> ready_utc_ms;  // UTC anchor of ready
  std::int64_t running_ms = 0;               // steady time from ready to now, or to the end
  std::vector<CardId> cards;                 // held here, from grant to proven release
  std::optional<RunResult> result;           // with kEnded
  bool operator==(const ObservedRun&) const = default;
};

struct ObservedInstance {
  InstanceId id;
  bool unknown = false;    // the desired set lacks it: kept and reported
  bool destroyed = false;  // the tombstone was carried out: nothing is left
  ImageState image = ImageState::kUnknown;
  std::string image_digest;
  std::optional<int> image_percent;
  DiskState disk = DiskState::kNone;
  std::string problem;  // why image or disk failed, for the user
  std::string remedy;
  std::int64_t disk_used_bytes = 0;
  std::string host_key;  // "ssh-ed25519 AAAA…", made by the node with the disk
  std::optional<ObservedRun> run;
  bool operator==(const ObservedInstance&) const = default;
};

enum class CardHealth { kFree, kHeld, kQuarantined };

struct ObservedCard {
  CardId id;
  std::string model;  // as the driver says it: "NVIDIA GeForce RTX 3090"
  std::string type;   // catalogue name: "RTX 3090"
  std::int64_t memory_bytes = 0;
  CardHealth health = CardHealth::kFree;
  std::string reason;  // of a quarantine
  std::optional<int> utilization_percent;
  std::optional<std::int64_t> memory_used_bytes;
  std::optional<int> temperature_c;
  InstanceId holder;
  bool operator==(const ObservedCard&) const = default;
};

struct ObservedImage {
  std::string reference;
  std::string digest;
  std::int64_t size_bytes = 0;
  bool operator==(const ObservedImage&) const = default;
};

struct ObservedSet {
  NodeId node;
  std::string boot_id;
  std::uint64_t desired_revision = 0;  // the last desired set taken in
  bool simulated_cards = false;
  std::string driver_version;  // empty where there is no driver
  int cuda_version = 0;        // major * 1000 + minor * 10; 0: no driver
  std::vector<ObservedInstance> instances;
  std::vector<ObservedCard> cards;
  std::vector<ObservedImage> images;  // present in the node's store
  bool operator==(const ObservedSet&) const = default;
};

}  // namespace autodl
