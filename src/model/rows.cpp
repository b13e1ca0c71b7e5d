// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "model/rows.hpp"

#include <iterator>

namespace autodl {
namespace {

constexpr std::string_view kRoles[] = {"user", "operator"};
constexpr std::string_view kActors[] = {"user", "platform", "operator"};
constexpr std::string_view kRunStates[] = {"queued", "starting", "running", "stopping", "ended"};

template <class E, std::size_t N>
std::optional<E> parse(const std::string_view (&words)[N], std::string_view text) {
  for (std::size_t i = 0; i < N; ++i) {
    if (words[i] == text) return static_cast<E>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Role role) {
  return kRoles[static_cast<std::size_t>(role)];
}
std::string_view to_string(Actor actor) {
  return kActors[static_cast<std::size_t>(actor)];
}
std::string_view to_string(RunState state) {
  return kRunStates[static_cast<std::size_t>(state)];
}
std::optional<Role> parse_role(std::string_view text) {
  return parse<Role>(kRoles, text);
}
std::optional<Actor> parse_actor(std::string_view text) {
  return parse<Actor>(kActors, text);
}
std::optional<RunState> parse_run_state(std::string_view text) {
  return parse<RunState>(kRunStates, text);
}

}  // namespace autodl
