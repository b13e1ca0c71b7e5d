// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_protocol.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <limits>

namespace autodl {
namespace {

namespace json = boost::json;

Error bad_answer(std::string_view why) {
  return Error(ErrorKind::kUnavailable, "nvml_crashed",
               "the NVML child gave no valid answer: " + std::string(why));
}

template <class T>
void put(json::object& object, std::string_view key, const std::optional<T>& value) {
  if (value.has_value()) object[key] = *value;
}

json::object to_json(const CardInfo& card) {
  json::object out;
  out["index"] = card.index;
  out["uuid"] = card.id.str();
  out["model"] = card.model;
  out["pci"] = card.pci_bus_id;
  out["problem"] = card.problem;
  put(out, "minor", card.minor);
  put(out, "cc", card.compute_capability);
  put(out, "memory", card.memory_bytes);
  put(out, "memory_used", card.memory_used_bytes);
  put(out, "memory_reserved", card.memory_reserved_bytes);
  put(out, "utilization", card.utilization_percent);
  put(out, "memory_utilization", card.memory_utilization_percent);
  put(out, "temperature", card.temperature_c);
  put(out, "fan", card.fan_percent);
  put(out, "power_mw", card.power_mw);
  put(out, "power_limit_mw", card.power_limit_mw);
  put(out, "sm_mhz", card.sm_clock_mhz);
  put(out, "memory_mhz", card.memory_clock_mhz);
  if (card.processes.has_value()) {
    json::array list;
    for (const auto& process : *card.processes) {
      json::object one{{"pid", process.pid}};
      put(one, "memory", process.memory_bytes);
      list.push_back(std::move(one));
    }
    out["processes"] = std::move(list);
  }
  return out;
}

std::string text(const json::object& object, std::string_view key, std::size_t max) {
  const auto* value = object.if_contains(key);
  if (value == nullptr || !value->is_string()) return {};
  std::size_t length = value->get_string().size();
  if (length > max) {  // cut between characters: what is told goes on as UTF-8
    length = max;
    while (length > 0 && (value->get_string()[length] & 0xC0) == 0x80) --length;
  }
  std::string out(value->get_string().c_str(), length);
  // Names go to logs and tables: no control characters.
  std::erase_if(out, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  return out;
}

// Empty where it can't be a card's id: a card that doesn't tell who it is.
CardId id_of(const json::object& card) {
  const auto id = text(card, "uuid", 96);
  const bool good = std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_';
  });
  return good ? CardId(id) : CardId();
}

std::optional<std::int64_t> number(const json::object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  if (value == nullptr || !value->is_int64() || value->get_int64() < 0) return std::nullopt;
  return value->get_int64();
}

std::optional<int> small(const json::object& object, std::string_view key) {
  const auto value = number(object, key);
  if (!value || *value > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*value);
}

CardInfo card_of(const json::object& in) {
  CardInfo card;
  card.index = small(in, "index").value_or(0);
  card.id = id_of(in);
  card.model = text(in, "model", 96);
  card.pci_bus_id = text(in, "pci", 32);
  card.problem = text(in, "problem", 200);
  card.minor = small(in, "minor");
  card.compute_capability = small(in, "cc");
  card.memory_bytes = number(in, "memory");
  card.memory_used_bytes = number(in, "memory_used");
  card.memory_reserved_bytes = number(in, "memory_reserved");
  card.utilization_percent = small(in, "utilization");
  card.memory_utilization_percent = small(in, "memory_utilization");
  card.temperature_c = small(in, "temperature");
  card.fan_percent = small(in, "fan");
  card.power_mw = number(in, "power_mw");
  card.power_limit_mw = number(in, "power_limit_mw");
  card.sm_clock_mhz = small(in, "sm_mhz");
  card.memory_clock_mhz = small(in, "memory_mhz");
  const auto* list = in.if_contains("processes");
  if (list != nullptr && list->is_array()) {
    auto& processes = card.processes.emplace();
    for (const auto& entry : list->get_array()) {
      if (!entry.is_object() || processes.size() == kNvmlProcessesMax) continue;
      if (const auto pid = number(entry.get_object(), "pid"))
        processes.push_back({*pid, number(entry.get_object(), "memory")});
    }
  }
  return card;
}

}  // namespace

std::string print_inventory(const Inventory& inventory) {
  json::array cards;
  for (const auto& card : inventory.cards) cards.push_back(to_json(card));
  const json::object out{{"driver", inventory.driver_version},
                         {"cuda", inventory.cuda_version},
                         {"simulated", inventory.simulated},
                         {"cards", std::move(cards)}};
  return json::serialize(out) + "\n";
}

std::string print_nvml_error(std::string_view message) {
  return json::serialize(json::object{{"error", message}}) + "\n";
}

Result<Inventory> parse_inventory(std::string_view line) {
  if (line.size() > kNvmlAnswerMax) return bad_answer("too long");
  json::error_code error;
  json::parse_options options;
  options.max_depth = 8;
  const auto value = json::parse(json::string_view(line.data(), line.size()), error, {}, options);
  if (error || !value.is_object()) return bad_answer("no JSON object");
  const auto& object = value.get_object();
  if (object.contains("error"))
    return Error(ErrorKind::kUnavailable, "nvml_failed",
                 "the NVIDIA driver says: " + text(object, "error", 200));
  const auto* cards = object.if_contains("cards");
  if (cards == nullptr || !cards->is_array()) return bad_answer("no list of cards");
  if (cards->get_array().size() > kNvmlCardsMax) return bad_answer("too many cards");
  Inventory inventory;
  inventory.driver_version = text(object, "driver", 64);
  inventory.cuda_version = small(object, "cuda").value_or(0);
  const auto* simulated = object.if_contains("simulated");
  inventory.simulated = simulated != nullptr && simulated->is_bool() && simulated->get_bool();
  for (const auto& card : cards->get_array()) {
    if (!card.is_object()) return bad_answer("a card is no object");
    inventory.cards.push_back(card_of(card.get_object()));
  }
  return inventory;
}

Inventory keep_lost_cards(const std::vector<CardInfo>& known, Inventory fresh) {
  const auto told = [&](const CardId& id) {
    return std::any_of(fresh.cards.begin(), fresh.cards.end(),
                       [&](const CardInfo& card) { return card.id == id; });
  };
  std::vector<CardInfo> lost;
  for (const auto& card : known) {
    if (card.id.empty() || told(card.id)) continue;
    CardInfo gone;  // who it is stays true; what it was doing doesn't
    gone.id = card.id;
    gone.index = card.index;
    gone.model = card.model;
    gone.pci_bus_id = card.pci_bus_id;
    gone.minor = card.minor;
    gone.compute_capability = card.compute_capability;
    gone.memory_bytes = card.memory_bytes;
    gone.problem = "the driver no longer lists this card";
    for (const auto& nameless : fresh.cards)
      if (nameless.id.empty() && nameless.index == card.index && !nameless.problem.empty())
        gone.problem = nameless.problem;
    lost.push_back(std::move(gone));
  }
  for (const auto& card : lost)
    std::erase_if(fresh.cards, [&](const CardInfo& nameless) {
      return nameless.id.empty() && nameless.index == card.index;
    });
  fresh.cards.insert(fresh.cards.end(), lost.begin(), lost.end());
  std::sort(fresh.cards.begin(), fresh.cards.end(), [](const CardInfo& a, const CardInfo& b) {
    return a.index != b.index ? a.index < b.index : a.id < b.id;
  });
  return fresh;
}

}  // namespace autodl
