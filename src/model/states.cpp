// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "model/states.hpp"

#include <array>
#include <utility>

namespace autodl {
namespace {

constexpr std::array kStates = {
    std::pair{InstanceState::kCreated, std::string_view{"created"}},
    std::pair{InstanceState::kQueued, std::string_view{"queued"}},
    std::pair{InstanceState::kStarting, std::string_view{"starting"}},
    std::pair{InstanceState::kRunning, std::string_view{"running"}},
    std::pair{InstanceState::kStopping, std::string_view{"stopping"}},
    std::pair{InstanceState::kStopped, std::string_view{"stopped"}},
    std::pair{InstanceState::kFailed, std::string_view{"failed"}},
    std::pair{InstanceState::kReleased, std::string_view{"released"}},
};
constexpr std::array kOutcomes = {
    std::pair{Outcome::kCompleted, std::string_view{"completed"}},
    std::pair{Outcome::kFailed, std::string_view{"failed"}},
    std::pair{Outcome::kRule, std::string_view{"rule"}},
    std::pair{Outcome::kCancelled, std::string_view{"cancelled"}},
    std::pair{Outcome::kLost, std::string_view{"lost"}},
    std::pair{Outcome::kStartFailed, std::string_view{"start_failed"}},
};
constexpr std::array kPolicies = {
    std::pair{RestartPolicy::kNever, std::string_view{"never"}},
    std::pair{RestartPolicy::kOnLoss, std::string_view{"on-loss"}},
};
constexpr std::array kStopBys = {
    std::pair{StopBy::kUser, std::string_view{"user"}},
    std::pair{StopBy::kRule, std::string_view{"rule"}},
    std::pair{StopBy::kLease, std::string_view{"lease"}},
    std::pair{StopBy::kPlatform, std::string_view{"platform"}},
};

template <class Table, class Value>
std::string_view word_of(const Table& table, Value value) {
  for (const auto& [known, word] : table)
    if (known == value) return word;
  return "unknown";
}

template <class Value, class Table>
std::optional<Value> value_of(const Table& table, std::string_view text) {
  for (const auto& [known, word] : table)
    if (word == text) return known;
  return std::nullopt;
}

}  // namespace

std::string_view to_string(InstanceState state) {
  return word_of(kStates, state);
}
std::string_view to_string(Outcome outcome) {
  return word_of(kOutcomes, outcome);
}
std::string_view to_string(RestartPolicy policy) {
  return word_of(kPolicies, policy);
}
std::string_view to_string(StopBy by) {
  return word_of(kStopBys, by);
}

std::optional<InstanceState> parse_instance_state(std::string_view text) {
  return value_of<InstanceState>(kStates, text);
}
std::optional<Outcome> parse_outcome(std::string_view text) {
  return value_of<Outcome>(kOutcomes, text);
}
std::optional<RestartPolicy> parse_restart_policy(std::string_view text) {
  return value_of<RestartPolicy>(kPolicies, text);
}
std::optional<StopBy> parse_stop_by(std::string_view text) {
  return value_of<StopBy>(kStopBys, text);
}

std::string_view status_word(InstanceState state) {
  switch (state) {
    case InstanceState::kCreated: return "CREATED";
    case InstanceState::kQueued: return "QUEUED";
    case InstanceState::kStarting: return "STARTING";
    case InstanceState::kRunning: return "RUNNING";
    case InstanceState::kStopping: return "STOPPING";
    case InstanceState::kStopped:
    case InstanceState::kFailed:
    case InstanceState::kReleased: return "STOPPED";
  }
  return "STOPPED";
}

}  // namespace autodl
