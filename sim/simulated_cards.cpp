// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "sim/simulated_cards.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "gpu/card_delivery.hpp"

namespace autodl::sim {
namespace {

namespace fs = std::filesystem;

// Of a card's control nodes, as the real driver has them.
constexpr std::array<const char*, 3> kControlNodes = {"/dev/nvidiactl", "/dev/nvidia-uvm",
                                                      "/dev/nvidia-uvm-tools"};

Status make_folder(const std::string& path, mode_t mode) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return errno_error(fmt::format("make '{}'", path), error.value());
  if (chmod(path.c_str(), mode) != 0) return errno_error(fmt::format("chmod '{}'", path), errno);
  return {};
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return Error(ErrorKind::kInternal, "sim_file_missing",
                 fmt::format("simulated driver: can't read '{}'", path),
                 "build the targets nvidia_ml and nvidia_smi, or name where they are");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// A copy under its final name only when whole; one that is there and the same is left alone, since
// running instances have it mounted.
Status install(const std::string& from, const std::string& to) {
  ADL_TRY(bytes, read_file(from));
  if (const auto old = read_file(to); old.ok() && *old == bytes) return {};
  const auto part = fmt::format("{}.new.{}", to, getpid());
  std::ofstream out(part, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) return Error(ErrorKind::kInternal, "sim_write", fmt::format("can't write '{}'", part));
  if (chmod(part.c_str(), 0755) != 0 || rename(part.c_str(), to.c_str()) != 0)
    return errno_error(fmt::format("install '{}'", to), errno);
  return {};
}

DeviceNode stand_in(std::string path) {
  return {.host_path = "/dev/null", .container_path = std::move(path), .major = 1, .minor = 3};
}

Error unknown_card(const CardId& card) {
  return Error(ErrorKind::kNotFound, "unknown_card",
               fmt::format("this machine has no simulated card '{}'", card.str()));
}

}  // namespace

std::int64_t pid_inside(std::int64_t host_pid) {
  std::ifstream status(fmt::format("/proc/{}/status", host_pid));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("NSpid:")) continue;
    const auto last = line.find_last_of("\t ");
    std::int64_t pid = host_pid;
    std::from_chars(line.data() + last + 1, line.data() + line.size(), pid);
    return pid;
  }
  return host_pid;
}

Result<SimulatedCards> SimulatedCards::make(SimulatedCardsConfig config,
                                            const std::vector<adlsim_card>& cards) {
  ADL_TRY_STATUS(make_folder(config.folder, 0711));
  ADL_TRY_STATUS(make_folder(config.folder + "/instances", 0711));
  ADL_TRY_STATUS(make_folder(config.folder + "/lib", 0755));
  ADL_TRY_STATUS(make_folder(config.folder + "/lib/bin", 0755));
  ADL_TRY_STATUS(install(config.library, config.folder + "/lib/libnvidia-ml.so.1"));
  ADL_TRY_STATUS(install(config.nvidia_smi, config.folder + "/lib/bin/nvidia-smi"));
  const auto link = config.folder + "/lib/libnvidia-ml.so";
  if (symlink("libnvidia-ml.so.1", link.c_str()) != 0 && errno != EEXIST)
    return errno_error(fmt::format("link '{}'", link), errno);
  ADL_TRY(state, GpuState::create(config.state_path, cards));
  return SimulatedCards(std::move(config), std::move(state));
}

std::string SimulatedCards::view_folder(const InstanceId& instance) const {
  return config_.folder + "/instances/" + instance.str();
}

// The instance's cards as the host has them now, in the order of the grant.
Status SimulatedCards::write_view(const InstanceId& instance, const std::vector<CardId>& cards) {
  ADL_TRY(host, state_.snapshot());
  std::vector<adlsim_card> view;
  for (const auto& id : cards) {
    const auto found = std::find_if(host.cards.begin(), host.cards.end(),
                                    [&](const auto& card) { return id.str() == card.uuid; });
    if (found == host.cards.end()) return unknown_card(id);
    view.push_back(*found);
    auto& card = view.back();
    for (std::uint32_t i = 0; i < card.process_count; ++i)
      card.processes[i].pid = pid_inside(card.processes[i].pid);
  }
  const Driver driver{host.head.driver_version, host.head.cuda_version};
  ADL_TRY(file, GpuState::create(view_folder(instance) + "/state", view, driver));
  return file.change([&](Snapshot& snapshot) -> Status {
    snapshot.head.driver_fault = host.head.driver_fault;
    snapshot.cards = view;
    return {};
  });
}

Result<CardDelivery> SimulatedCards::prepare(const InstanceId& instance,
                                             const std::vector<CardId>& cards) {
  CardDelivery delivery;
  if (cards.empty()) return delivery;
  if (!is_ulid(instance.str()))
    return Error(ErrorKind::kInvalid, "bad_instance_id",
                 fmt::format("'{}' is no instance id", instance.str()));
  ADL_TRY_STATUS(write_view(instance, cards));
  ADL_TRY(view, GpuState::read(view_folder(instance) + "/state"));
  for (const auto& card : view.cards)
    delivery.devices.push_back(stand_in(fmt::format("/dev/nvidia{}", card.minor)));
  for (const char* path : kControlNodes) delivery.devices.push_back(stand_in(path));
  delivery.mounts.push_back({config_.folder + "/lib", kDriverFolderInside, true});
  // The folder and not the file: a state file that is replaced is seen inside too.
  delivery.mounts.push_back({view_folder(instance), "/run/autodl-nvidia", true});
  return delivery;
}

Status SimulatedCards::report_load(const InstanceId& instance, const std::vector<CardLoad>& loads) {
  if (loads.empty()) return {};
  std::vector<CardId> cards;
  for (const auto& load : loads) cards.push_back(load.card);
  ADL_TRY_STATUS(state_.change([&](Snapshot& snapshot) -> Status {
    for (const auto& load : loads) {
      const auto found =
          std::find_if(snapshot.cards.begin(), snapshot.cards.end(),
                       [&](const auto& card) { return load.card.str() == card.uuid; });
      if (found == snapshot.cards.end()) return unknown_card(load.card);
      apply_load(*found, load.utilization_percent, load.memory_used_bytes);
      const auto count = std::min<std::size_t>(load.pids.size(), ADLSIM_PROCESSES_MAX);
      found->process_count = static_cast<std::uint32_t>(count);
      for (std::size_t i = 0; i < count; ++i)
        // Which process has how much isn't known from outside: equal parts.
        found->processes[i] = {
            .pid = load.pids[i],
            .memory_bytes = found->memory_used / static_cast<std::int64_t>(count),
            .sm_percent = found->gpu_percent / static_cast<std::int32_t>(count),
            .memory_percent = 0};
    }
    return {};
  }));
  return write_view(instance, cards);
}

Status SimulatedCards::release(const InstanceId& instance, const std::vector<CardId>& cards) {
  ADL_TRY_STATUS(state_.change([&](Snapshot& snapshot) -> Status {
    for (auto& card : snapshot.cards) {
      if (std::none_of(cards.begin(), cards.end(),
                       [&](const CardId& id) { return id.str() == card.uuid; }))
        continue;
      apply_load(card, 0, 0);
      card.process_count = 0;
    }
    return {};
  }));
  if (!is_ulid(instance.str())) return {};
  std::error_code error;
  fs::remove_all(view_folder(instance), error);
  if (error) return errno_error(fmt::format("remove '{}'", view_folder(instance)), error.value());
  return {};
}

}  // namespace autodl::sim
