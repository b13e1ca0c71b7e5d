// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What control wants of a node: its whole desired set, sent again at each change and every 2 s.
// The node treats it as hostile: only ids, card UUIDs, image references, sizes and names; every
// host path, mount, device and option comes from the node's own configuration and inventory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "model/states.hpp"

namespace autodl {

enum class Presence {
  kPresent,   // keep it: disk made, image pinned
  kReleased,  // a tombstone: stop it and delete all; the only thing that deletes
};

struct StopRequest {
  StopBy by = StopBy::kUser;
  std::int64_t grace_ms = 10'000;  // INT, TERM after half of it, KILL after all of it
  bool operator==(const StopRequest&) const = default;
};

// One power-on. The node starts its command at most once, whatever is repeated or lost.
struct DesiredRun {
  RunId id;
  std::uint32_t attempt = 1;
  std::vector<CardId> cards;           // whole cards by UUID; empty for a run without a card
  std::optional<std::string> command;  // /bin/sh -c; none: a machine to SSH into
  std::string workdir = "/root";
  std::map<std::string, std::string> env;
  std::int64_t paid_until_ms = 0;   // how long it may still run, from when this was sent
  std::optional<StopRequest> stop;  // set: end it
  bool operator==(const DesiredRun&) const = default;
};

struct DesiredInstance {
  InstanceId id;
  Presence presence = Presence::kPresent;
  std::string name;             // hostname inside, made safe by the node
  std::string image;            // catalogue name or OCI reference
  std::string image_digest;     // pinned "sha256:…"; empty until the node told it
  std::int64_t disk_bytes = 0;  // hard size of the instance's whole file system
  std::uint32_t slot = 0;       // 0…: user-id range and address; unique in the cluster
  std::vector<std::string> authorized_keys;
  std::optional<DesiredRun> run;  // the current run; none: no container
  bool operator==(const DesiredInstance&) const = default;
};

struct DesiredSet {
  std::string cluster;         // a node refuses another cluster …
  std::uint64_t epoch = 0;     // … and a lower epoch of the store
  std::uint64_t revision = 0;  // grows with every change
  std::vector<DesiredInstance> instances;
  bool operator==(const DesiredSet&) const = default;
};

}  // namespace autodl
