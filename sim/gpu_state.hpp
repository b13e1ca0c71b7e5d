// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// GpuState: makes and changes the state file of the simulated driver (format: state_format.h).
// Each change is one read-modify-write under flock, so the node and a test's command line may both
// write; readers never wait and never see half a change. Values derived from a load (temperature,
// power, clocks, fan, PCIe) follow it; set_figure() overrides one until the next set_load().
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "sim/state_format.h"

namespace autodl::sim {

// All of the active slot, as values.
struct Snapshot {
  adlsim_slot_head head{};
  std::vector<adlsim_card> cards;
};

struct Driver {
  std::string version = "550.163.01";
  int cuda_version = 12040;  // major * 1000 + minor * 10
};

class GpuState {
 public:
  // Makes the file (mode 0644, its folder too) with these cards, or re-uses one that has the same
  // cards already: then loads, faults and counters are kept. Another set of cards replaces it
  // atomically. Errors: bad_state_file, and errno of open, write.
  static Result<GpuState> create(const std::string& path, const std::vector<adlsim_card>& cards,
                                 const Driver& driver = {});
  // An existing file, to be changed. Errors: bad_state_file (not ours, or another version).
  static Result<GpuState> open(const std::string& path);
  static Result<Snapshot> read(const std::string& path);

  const std::string& path() const { return path_; }
  Result<Snapshot> snapshot() const;

  // percent is cut to 0…100, memory to what the card has. Errors here and below: unknown_card.
  Status set_load(const CardId& card, int percent, std::int64_t memory_used_bytes);
  Status set_processes(const CardId& card, const std::vector<adlsim_process>& processes);
  Status set_fault(const CardId& card, adlsim_card_fault fault);
  Status set_driver_fault(adlsim_driver_fault fault);
  // An Xid: event sets hear of it; 79 also makes the card lost.
  Status raise_xid(const CardId& card, std::uint32_t xid);
  // One figure by name ("temperature", "power_mw", "fan", "sm_mhz", "memory_mhz", "memory_percent",
  // "pcie_generation", "pstate", "minor"); -1: the driver can't tell. Errors: unknown_figure.
  Status set_figure(const CardId& card, std::string_view figure, int value);

  // Any change at once. The function may add and remove cards.
  Status change(const std::function<Status(Snapshot&)>& edit);

 private:
  GpuState(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  Status change_card(const CardId& card, const std::function<Status(adlsim_card&)>& edit);

  std::string path_;
  UniqueFd fd_;
};

// The pure parts.
void apply_load(adlsim_card& card, int percent, std::int64_t memory_used_bytes);
Result<adlsim_card_fault> parse_card_fault(std::string_view text);  // ok lost hang crash error

}  // namespace autodl::sim
