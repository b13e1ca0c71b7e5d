// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// SimulatedCards: delivers simulated cards. An instance gets stand-ins for the device nodes, the
// simulated libnvidia-ml under /usr/lib/autodl-nvidia, nvidia-smi beside it, and a state file of
// its own at /run/autodl-nvidia/state that holds its cards alone, as 0…n-1, with its processes
// under the pids they have inside. The files are made from the host's state at each report.
//
// On the host, all below `folder` (made; 0711):
//   lib/libnvidia-ml.so.1, libnvidia-ml.so, bin/nvidia-smi     copies, replaced when they differ
//   instances/ID/state                                         the instance's view
#pragma once

#include <string>
#include <vector>

#include "gpu/card_provider.hpp"
#include "sim/gpu_state.hpp"

namespace autodl::sim {

struct SimulatedCardsConfig {
  std::string state_path;  // the host's state file
  std::string folder;      // "/run/autodl-sim"
  std::string library;     // the built libnvidia-ml.so.1
  std::string nvidia_smi;  // the built nvidia-smi (static)
};

class SimulatedCards final : public CardProvider {
 public:
  // Makes the folder and the state file with these cards. Errors: of GpuState::create, and errno.
  static Result<SimulatedCards> make(SimulatedCardsConfig config,
                                     const std::vector<adlsim_card>& cards);

  Result<CardDelivery> prepare(const InstanceId& instance,
                               const std::vector<CardId>& cards) override;
  Status report_load(const InstanceId& instance, const std::vector<CardLoad>& loads) override;
  Status release(const InstanceId& instance, const std::vector<CardId>& cards) override;

  GpuState& state() { return state_; }
  // What NvmlConfig needs: the library's path and AUTODL_SIM_STATE.
  std::string library_path() const { return config_.folder + "/lib/libnvidia-ml.so.1"; }

 private:
  SimulatedCards(SimulatedCardsConfig config, GpuState state)
      : config_(std::move(config)), state_(std::move(state)) {}
  std::string view_folder(const InstanceId& instance) const;
  Status write_view(const InstanceId& instance, const std::vector<CardId>& cards);

  SimulatedCardsConfig config_;
  GpuState state_;
};

// The pid that a process has in its innermost pid namespace (NSpid of /proc/PID/status); the pid
// itself where it can't be told.
std::int64_t pid_inside(std::int64_t host_pid);

}  // namespace autodl::sim
