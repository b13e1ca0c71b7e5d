// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "sim/models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "model/card_types.hpp"

namespace autodl::sim {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

// What a model is. memory_mib is memory.total as current drivers print it.
struct Model {
  std::string_view name;  // of the catalogue
  std::string_view nvml_name;
  std::uint32_t pci_device_id;
  int brand;         // 5 GeForce, 14 "NVIDIA", as NVML numbers them
  int architecture;  // 7 Ampere, 8 Ada, 9 Hopper, 10 Blackwell
  int cc_major, cc_minor, cores;
  std::int64_t memory_mib, reserved_mib;
  int power_limit_w, power_idle_w, sm_max_mhz, memory_max_mhz, pcie_generation;
  bool data_centre;  // passive cooling, ECC and MIG can be told, has a serial number
};

constexpr std::array kModels = {
    Model{"RTX 3090", "NVIDIA GeForce RTX 3090", 0x220410de, 5, 7, 8, 6, 10496, 24576, 320, 350, 24,
          2100, 9751, 4, false},
    Model{"RTX 4090", "NVIDIA GeForce RTX 4090", 0x268410de, 5, 8, 8, 9, 16384, 24564, 346, 450, 18,
          3105, 10501, 4, false},
    Model{"RTX 5090", "NVIDIA GeForce RTX 5090", 0x2b8510de, 5, 10, 12, 0, 21760, 32607, 485, 575,
          20, 3090, 14001, 5, false},
    Model{"A100 40GB", "NVIDIA A100-PCIE-40GB", 0x20f110de, 14, 7, 8, 0, 6912, 40960, 424, 250, 38,
          1410, 1215, 4, true},
    Model{"A100 80GB", "NVIDIA A100 80GB PCIe", 0x20b510de, 14, 7, 8, 0, 6912, 81920, 615, 300, 45,
          1410, 1512, 4, true},
    Model{"H100 80GB", "NVIDIA H100 80GB HBM3", 0x233010de, 14, 9, 9, 0, 16896, 81559, 551, 700, 70,
          1980, 2619, 5, true},
};

void copy_text(char* out, std::size_t size, std::string_view text) {
  const auto bytes = std::min(size - 1, text.size());
  std::memcpy(out, text.data(), bytes);
  out[bytes] = 0;
}

adlsim_card make_card(const Model& model, std::uint32_t index) {
  adlsim_card card{};
  copy_text(card.name, sizeof card.name, model.nvml_name);
  // The model is in the UUID: a list that grows at its end keeps the UUIDs of the cards before.
  copy_text(card.uuid, sizeof card.uuid,
            fmt::format("GPU-5a1e{:04x}-{:04x}-4000-8000-{:012x}", index, model.pci_device_id >> 16,
                        index + 1));
  if (model.data_centre)
    copy_text(card.serial, sizeof card.serial, fmt::format("132{:010}", index));
  copy_text(card.vbios, sizeof card.vbios, "94.02.42.00.A9");
  card.pci_bus = 0x3b + index * 3;
  card.pci_device_id = model.pci_device_id;
  card.pci_subsystem_id = 0x100010de;
  card.minor = static_cast<std::int32_t>(index);
  card.brand = model.brand;
  card.architecture = model.architecture;
  card.cc_major = model.cc_major;
  card.cc_minor = model.cc_minor;
  card.cores = model.cores;
  card.memory_total = model.memory_mib * kMiB;
  card.memory_reserved = model.reserved_mib * kMiB;
  card.slowdown_c = 90;
  card.shutdown_c = 95;
  card.idle_c = 31 + static_cast<std::int32_t>(index % 4);
  card.temperature_c = card.idle_c;
  card.fan_percent = model.data_centre ? -1 : 0;
  card.power_limit_mw = model.power_limit_w * 1000;
  card.power_idle_mw = model.power_idle_w * 1000;
  card.power_mw = card.power_idle_mw;
  card.sm_idle_mhz = 210;
  card.sm_mhz = card.sm_idle_mhz;
  card.sm_max_mhz = model.sm_max_mhz;
  card.memory_idle_mhz = model.data_centre ? model.memory_max_mhz : 405;
  card.memory_mhz = card.memory_idle_mhz;
  card.memory_max_mhz = model.memory_max_mhz;
  card.pcie_generation = 1;
  card.pcie_max_generation = model.pcie_generation;
  card.pcie_width = 16;
  card.pstate = 8;
  card.ecc_mode = model.data_centre ? 1 : -1;
  card.mig_mode = model.data_centre ? 0 : -1;
  return card;
}

Error bad_list(std::string_view entry, std::string_view why) {
  return Error(ErrorKind::kInvalid, "bad_card_list",
               fmt::format("list of simulated cards: '{}' {}", entry, why),
               fmt::format("write MODEL or MODEL:COUNT, separated by commas, such as \"{}\"; "
                           "known models: {}",
                           kDefaultCards, known_models()));
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

Status add_entry(std::string_view entry, std::vector<adlsim_card>& cards) {
  auto name = entry;
  std::uint32_t count = 1;
  if (const auto colon = entry.rfind(':'); colon != std::string_view::npos) {
    name = trim(entry.substr(0, colon));
    const auto digits = trim(entry.substr(colon + 1));
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    if (error != std::errc{} || end != digits.data() + digits.size() || count == 0)
      return bad_list(entry, "has no count of 1 or more after the colon");
  }
  const auto* model = std::find_if(kModels.begin(), kModels.end(), [&](const Model& candidate) {
    return card_type_key(candidate.name) == card_type_key(name);
  });
  if (model == kModels.end()) return bad_list(entry, "is no model that can be simulated");
  if (count > ADLSIM_CARDS_MAX - cards.size())
    return Error(ErrorKind::kInvalid, "too_many_cards",
                 fmt::format("list of simulated cards: more than {} cards", ADLSIM_CARDS_MAX),
                 "ask for fewer cards");
  for (std::uint32_t i = 0; i < count; ++i)
    cards.push_back(make_card(*model, static_cast<std::uint32_t>(cards.size())));
  return {};
}

}  // namespace

Result<std::vector<adlsim_card>> parse_card_list(std::string_view list) {
  std::vector<adlsim_card> cards;
  for (std::size_t start = 0; start <= list.size();) {
    const auto comma = std::min(list.find(',', start), list.size());
    ADL_TRY_STATUS(add_entry(trim(list.substr(start, comma - start)), cards));
    start = comma + 1;
  }
  return cards;
}

std::string known_models() {
  std::string names;
  for (const auto& model : kModels) {
    if (!names.empty()) names += ", ";
    names += model.name;
  }
  return names;
}

}  // namespace autodl::sim
