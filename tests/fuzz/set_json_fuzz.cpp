// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The two sets of the link: what is accepted prints to what is accepted as the same set, and a node
// that tells others' words and figures (tools' errors, a driver's names) is understood.
#include "wire/set_json.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "fuzz.hpp"

namespace {

using namespace autodl;

ObservedSet told_by_others(std::string_view text) {
  std::int64_t figure = 0;
  std::memcpy(&figure, text.data(), std::min(text.size(), sizeof figure));
  const std::string words(text);
  ObservedSet set;
  set.node = NodeId("n1");
  set.driver_version = words;
  ObservedInstance instance;
  instance.id = InstanceId("01ARZ3NDEKTSV4RRFFQ69G5FAV");
  instance.problem = instance.remedy = words;
  instance.disk_used_bytes = figure;
  set.instances.push_back(std::move(instance));
  ObservedCard card;
  card.id = CardId("GPU-1");
  card.model = card.reason = words;
  card.memory_bytes = figure;
  card.utilization_percent = static_cast<int>(figure);
  card.temperature_c = static_cast<int>(figure);
  set.cards.push_back(std::move(card));
  return set;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz::text_of(data, size);
  fuzz::round_trip(decode_desired, encode_desired, text, "desired set");
  fuzz::round_trip(decode_observed, encode_observed, text, "observed set");
  const auto told = decode_observed(encode_observed(told_by_others(text)));
  fuzz::require(told.ok(), "a node is understood whatever its driver and tools say");
  return 0;
}
