// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace autodl {
namespace {

// Facts of NVML's ABI; the declarations are our own, no header of NVIDIA's is used.
constexpr int kSuccess = 0;
constexpr int kInsufficientSize = 7;
struct PciInfo {
  char legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct Memory {
  unsigned long long total, free, used;
};
struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct Rates {
  unsigned gpu, memory;
};
struct Process {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(PciInfo) == 68 && sizeof(MemoryV2) == 40 && sizeof(Process) == 24);
constexpr unsigned kMemoryV2 = sizeof(MemoryV2) | 2U << 24U;
constexpr unsigned kCardsMax = 256;

std::optional<std::int64_t> bytes_of(unsigned long long value) {
  if (value > static_cast<unsigned long long>(std::numeric_limits<std::int64_t>::max()))
    return std::nullopt;  // NVML_VALUE_NOT_AVAILABLE is all ones
  return static_cast<std::int64_t>(value);
}

Error failed(std::string message) {
  return Error(ErrorKind::kUnavailable, "nvml_failed", std::move(message));
}

}  // namespace

NvmlLibrary::~NvmlLibrary() {
  if (initialised_)
    if (auto* shutdown = symbol<int (*)()>("nvmlShutdown")) shutdown();
  // Not closed: the driver's library leaves threads behind.
}

template <class Function>
Function NvmlLibrary::symbol(const char* name) const {
  return reinterpret_cast<Function>(dlsym(library_, name));
}

std::string NvmlLibrary::error_text(int result) const {
  auto* describe = symbol<const char* (*)(int)>("nvmlErrorString");
  const char* words = describe != nullptr ? describe(result) : nullptr;
  return words != nullptr ? words : fmt::format("NVML error {}", result);
}

Status NvmlLibrary::open(const std::string& path) {
  if (library_ == nullptr) {
    library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) {
      const char* why = dlerror();
      return failed(fmt::format("open '{}': {}", path, why != nullptr ? why : "unknown reason"));
    }
  }
  if (initialised_) return {};
  auto* init = symbol<int (*)()>("nvmlInit_v2");
  if (init == nullptr) return failed(fmt::format("'{}' has no nvmlInit_v2", path));
  const int result = init();
  if (result != kSuccess) return failed(error_text(result));
  initialised_ = true;
  return {};
}

std::optional<std::string> NvmlLibrary::text(const char* name, Device device) const {
  std::array<char, 128> buffer{};
  auto* get = symbol<int (*)(Device, char*, unsigned)>(name);
  if (get == nullptr || get(device, buffer.data(), buffer.size()) != kSuccess) return std::nullopt;
  buffer.back() = 0;
  return std::string(buffer.data());
}

template <class Value>
std::optional<Value> NvmlLibrary::number(const char* name, Device device) const {
  unsigned value = 0;
  auto* get = symbol<int (*)(Device, unsigned*)>(name);
  if (get == nullptr || get(device, &value) != kSuccess) return std::nullopt;
  if (value > static_cast<unsigned>(std::numeric_limits<int>::max())) return std::nullopt;
  return static_cast<Value>(value);
}

std::optional<int> NvmlLibrary::number_by(const char* name, Device device, int selector) const {
  unsigned value = 0;
  auto* get = symbol<int (*)(Device, int, unsigned*)>(name);
  if (get == nullptr || get(device, selector, &value) != kSuccess) return std::nullopt;
  if (value > static_cast<unsigned>(std::numeric_limits<int>::max())) return std::nullopt;
  return static_cast<int>(value);
}

void NvmlLibrary::read_memory(Device device, CardInfo& card) const {
  MemoryV2 v2{};
  v2.version = kMemoryV2;
  auto* get_v2 = symbol<int (*)(Device, MemoryV2*)>("nvmlDeviceGetMemoryInfo_v2");
  if (get_v2 != nullptr && get_v2(device, &v2) == kSuccess) {
    card.memory_bytes = bytes_of(v2.total);
    card.memory_used_bytes = bytes_of(v2.used + v2.reserved);
    card.memory_reserved_bytes = bytes_of(v2.reserved);
    return;
  }
  Memory v1{};
  auto* get = symbol<int (*)(Device, Memory*)>("nvmlDeviceGetMemoryInfo");
  if (get == nullptr || get(device, &v1) != kSuccess) return;
  card.memory_bytes = bytes_of(v1.total);
  card.memory_used_bytes = bytes_of(v1.used);
}

// nullopt where neither list can be told; one of the two is enough.
std::optional<std::vector<CardProcess>> NvmlLibrary::processes(Device device) const {
  std::optional<std::vector<CardProcess>> all;
  for (const char* name :
       {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3"}) {
    auto* get = symbol<int (*)(Device, unsigned*, Process*)>(name);
    if (get == nullptr) continue;
    std::vector<Process> list(64);
    unsigned count = 0;
    int result = kInsufficientSize;
    for (int attempt = 0; attempt < 4 && result == kInsufficientSize; ++attempt) {
      if (attempt > 0) list.resize(std::min<std::size_t>(count + 32UL, 4096));
      count = static_cast<unsigned>(list.size());
      result = get(device, &count, list.data());
    }
    if (result != kSuccess) continue;
    if (!all) all.emplace();
    for (unsigned i = 0; i < std::min<std::size_t>(count, list.size()); ++i)
      all->push_back({list[i].pid, bytes_of(list[i].memory)});
  }
  return all;
}

CardInfo NvmlLibrary::read_card(unsigned index) const {
  CardInfo card;
  card.index = static_cast<int>(index);
  Device device = nullptr;
  auto* handle = symbol<int (*)(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2");
  const int result = handle != nullptr ? handle(index, &device) : -1;
  if (result != kSuccess) {
    card.problem = handle != nullptr ? error_text(result) : "no nvmlDeviceGetHandleByIndex_v2";
    return card;
  }
  card.id = CardId(text("nvmlDeviceGetUUID", device).value_or(""));
  card.model = text("nvmlDeviceGetName", device).value_or("");
  PciInfo pci{};
  auto* get_pci = symbol<int (*)(Device, PciInfo*)>("nvmlDeviceGetPciInfo_v3");
  if (get_pci != nullptr && get_pci(device, &pci) == kSuccess) {
    pci.bus_id[sizeof pci.bus_id - 1] = 0;
    card.pci_bus_id = pci.bus_id;
  }
  card.minor = number("nvmlDeviceGetMinorNumber", device);
  int major = 0;
  int minor = 0;
  auto* get_cc = symbol<int (*)(Device, int*, int*)>("nvmlDeviceGetCudaComputeCapability");
  if (get_cc != nullptr && get_cc(device, &major, &minor) == kSuccess)
    card.compute_capability = major * 10 + minor;
  read_memory(device, card);
  Rates rates{};
  auto* get_rates = symbol<int (*)(Device, Rates*)>("nvmlDeviceGetUtilizationRates");
  const int rates_result = get_rates != nullptr ? get_rates(device, &rates) : -1;
  if (rates_result == kSuccess && rates.gpu <= 100) {
    card.utilization_percent = static_cast<int>(rates.gpu);
    if (rates.memory <= 100) card.memory_utilization_percent = static_cast<int>(rates.memory);
  }
  card.temperature_c = number_by("nvmlDeviceGetTemperature", device, 0);
  card.fan_percent = number("nvmlDeviceGetFanSpeed", device);
  card.power_mw = number<std::int64_t>("nvmlDeviceGetPowerUsage", device);
  card.power_limit_mw = number<std::int64_t>("nvmlDeviceGetEnforcedPowerLimit", device);
  card.sm_clock_mhz = number_by("nvmlDeviceGetClockInfo", device, 1);
  card.memory_clock_mhz = number_by("nvmlDeviceGetClockInfo", device, 2);
  card.processes = processes(device);
  // Neither memory nor temperature: the card answers by name only.
  if (!card.memory_used_bytes && !card.temperature_c)
    card.problem = "the card tells neither memory nor temperature: " + error_text(rates_result);
  return card;
}

Result<Inventory> NvmlLibrary::read(const std::string& path) {
  // A bare name is looked up by the loader; a path that isn't there means: no driver here.
  if (library_ == nullptr && path.find('/') != std::string::npos && access(path.c_str(), F_OK) != 0)
    return Inventory{};
  if (auto status = open(path); !status.ok()) {
    const bool absent = library_ == nullptr && path.find('/') == std::string::npos &&
                        status.error().message().find("No such file") != std::string::npos;
    if (absent) return Inventory{};
    return status.error();
  }
  Inventory inventory;
  inventory.simulated = dlsym(library_, "autodlSimulatedDriver") != nullptr;
  std::array<char, 96> version{};
  auto* get_version = symbol<int (*)(char*, unsigned)>("nvmlSystemGetDriverVersion");
  if (get_version != nullptr && get_version(version.data(), version.size()) == kSuccess) {
    version.back() = 0;
    inventory.driver_version = version.data();
  }
  int cuda = 0;
  auto* get_cuda = symbol<int (*)(int*)>("nvmlSystemGetCudaDriverVersion_v2");
  if (get_cuda != nullptr && get_cuda(&cuda) == kSuccess) inventory.cuda_version = cuda;
  unsigned count = 0;
  auto* get_count = symbol<int (*)(unsigned*)>("nvmlDeviceGetCount_v2");
  const int result = get_count != nullptr ? get_count(&count) : -1;
  if (result != kSuccess) return failed("count the cards: " + error_text(result));
  for (unsigned i = 0; i < std::min(count, kCardsMax); ++i) inventory.cards.push_back(read_card(i));
  return inventory;
}

}  // namespace autodl
