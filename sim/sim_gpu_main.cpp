// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// autodl-sim-gpu: makes and changes the simulated driver's state by hand and in tests.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>

#include "sim/gpu_state.hpp"
#include "sim/models.hpp"

namespace autodl::sim {
namespace {

int report(const Status& status) {
  if (status.ok()) return 0;
  fmt::print(stderr, "autodl-sim-gpu: {}\n", status.error().message());
  if (!status.error().remedy().empty()) fmt::print(stderr, "  {}\n", status.error().remedy());
  return 1;
}

// A card by index or UUID.
Result<CardId> card_of(const GpuState& state, const std::string& text) {
  ADL_TRY(snapshot, state.snapshot());
  for (std::size_t i = 0; i < snapshot.cards.size(); ++i)
    if (text == std::to_string(i) || text == snapshot.cards[i].uuid)
      return CardId(snapshot.cards[i].uuid);
  return Error(ErrorKind::kNotFound, "unknown_card", fmt::format("no card '{}'", text),
               "name one by index or UUID, as `autodl-sim-gpu list` shows them");
}

struct Arguments {
  std::string state = ADLSIM_PATH_HOST;
  std::string cards{kDefaultCards};
  std::string card, fault, figure;
  int percent = 0, value = 0;
  std::int64_t memory_mib = 0;
  std::uint32_t xid = 0;
  Driver driver;
};

Status list(const Arguments& arguments) {
  ADL_TRY(snapshot, GpuState::read(arguments.state));
  fmt::print("driver {} cuda {} fault {}\n", snapshot.head.driver_version,
             snapshot.head.cuda_version, snapshot.head.driver_fault);
  for (std::size_t i = 0; i < snapshot.cards.size(); ++i) {
    const auto& card = snapshot.cards[i];
    fmt::print("{} {} {} minor {} {}% {} of {} MiB {}C fault {} xid {}\n", i, card.uuid, card.name,
               card.minor, card.gpu_percent, (card.memory_used + card.memory_reserved) >> 20,
               card.memory_total >> 20, card.temperature_c, card.fault, card.xid);
  }
  return {};
}

Status set_driver_fault(const Arguments& arguments) {
  constexpr std::array<std::string_view, 4> kNames = {"ok", "not-loaded", "mismatch", "hang"};
  const auto* found = std::find(kNames.begin(), kNames.end(), arguments.fault);
  if (found == kNames.end())
    return Error(ErrorKind::kInvalid, "unknown_fault",
                 fmt::format("'{}' is no fault of a driver", arguments.fault),
                 "one of ok not-loaded mismatch hang");
  ADL_TRY(state, GpuState::open(arguments.state));
  return state.set_driver_fault(static_cast<adlsim_driver_fault>(found - kNames.begin()));
}

template <class Change>
Status on_card(const Arguments& arguments, const Change& change) {
  ADL_TRY(state, GpuState::open(arguments.state));
  ADL_TRY(card, card_of(state, arguments.card));
  return change(state, card);
}

int run(int argc, char** argv) {
  Arguments a;
  CLI::App app("Makes and changes the simulated NVIDIA driver's cards.", "autodl-sim-gpu");
  app.add_option("--state", a.state, "state file")->envname(ADLSIM_ENV)->capture_default_str();
  app.require_subcommand(1);
  auto* create = app.add_subcommand("create", "make the state file");
  create->add_option("cards", a.cards, "MODEL[:COUNT],…")->capture_default_str();
  create->add_option("--driver", a.driver.version)->capture_default_str();
  create->add_option("--cuda", a.driver.cuda_version, "major * 1000 + minor * 10");
  auto* show = app.add_subcommand("list", "show the cards");
  const auto on = [&](const char* name, const char* help) {
    auto* command = app.add_subcommand(name, help);
    command->add_option("card", a.card, "index or UUID")->required();
    return command;
  };
  auto* load = on("load", "load and memory of a card");
  load->add_option("percent", a.percent)->required()->check(CLI::Range(0, 100));
  load->add_option("memory_mib", a.memory_mib)->required()->check(CLI::NonNegativeNumber);
  auto* fault = on("fault", "ok, lost, hang, crash or error");
  fault->add_option("fault", a.fault)->required();
  auto* xid = on("xid", "raise an Xid event");
  xid->add_option("xid", a.xid)->required();
  auto* set = on("set", "one figure: temperature, power_mw, fan, minor…; -1: can't be told");
  set->add_option("figure", a.figure)->required();
  set->add_option("value", a.value)->required();
  auto* driver = app.add_subcommand("driver-fault", "ok, not-loaded, mismatch or hang");
  driver->add_option("fault", a.fault)->required();
  CLI11_PARSE(app, argc, argv);

  if (show->parsed()) return report(list(a));
  if (driver->parsed()) return report(set_driver_fault(a));
  if (create->parsed()) {
    const auto cards = parse_card_list(a.cards);
    if (!cards.ok()) return report(cards.error());
    const auto made = GpuState::create(a.state, *cards, a.driver);
    return report(made.ok() ? Status{} : Status{made.error()});
  }
  return report(on_card(a, [&](GpuState& state, const CardId& card) -> Status {
    if (load->parsed()) return state.set_load(card, a.percent, a.memory_mib << 20);
    if (xid->parsed()) return state.raise_xid(card, a.xid);
    if (set->parsed()) return state.set_figure(card, a.figure, a.value);
    ADL_TRY(parsed, parse_card_fault(a.fault));
    return state.set_fault(card, parsed);
  }));
}

}  // namespace
}  // namespace autodl::sim

int main(int argc, char** argv) {
  return autodl::sim::run(argc, argv);
}
