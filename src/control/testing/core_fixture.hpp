// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// A core on a memory store with one node of two cards and a user with money.
#pragma once

#include <gtest/gtest.h>

#include "control/core.hpp"
#include "control/testing/model_node.hpp"
#include "model/money.hpp"
#include "store/memory_store.hpp"

namespace autodl::testing_support {

using std::chrono::seconds;

inline constexpr std::int64_t kPrice = 1'580'000;

inline std::vector<ObservedCard> two_cards() {
  std::vector<ObservedCard> cards(2);
  for (std::size_t i = 0; i < cards.size(); ++i) {
    cards[i].id = CardId("GPU-" + std::to_string(i));
    cards[i].type = "RTX 3090";
    cards[i].memory_bytes = std::int64_t{24} << 30;
  }
  return cards;
}

class CoreTest : public testing::Test {
 protected:
  CoreTest() {
    config.prices_micro = {{"RTX 3090", kPrice}};
    open();
    anna = core->create_account(context, "anna", Role::kUser)->account.row.id;
    EXPECT_TRUE(core->credit(context, anna, 100'000'000, "gift").ok());
    sync();
  }
  void open() {
    auto opened = ControlCore::open(config, store, clock, random, catalogue, secrets);
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    core = std::move(opened).value();
  }
  // Everything that is under way comes to rest: messages go both ways a few times.
  void sync() {
    for (int i = 0; i < 4; ++i) {
      core->on_observed(node.observed());
      core->tick();
      const auto flushed = core->flush();
      ASSERT_TRUE(flushed.ok()) << flushed.error().message();
      node.on_desired(*core->desired_set(NodeId("local")));
      node.step();
    }
    core->on_observed(node.observed());
    ASSERT_TRUE(core->flush().ok());
  }
  void pass(std::int64_t ms) {
    while (ms > 0) {
      const std::int64_t part = std::min<std::int64_t>(ms, 10'000);
      clock.advance(Millis(part));
      ms -= part;
      node.step();
      core->on_observed(node.observed());
      core->tick();
      ASSERT_TRUE(core->flush().ok());
      node.on_desired(*core->desired_set(NodeId("local")));
    }
  }
  CreateRequest request(const char* name = nullptr) {
    CreateRequest out;
    if (name != nullptr) out.name = name;
    out.image = "autodl/base:trixie";
    out.command = "python train.py";
    out.gpu_type = "rtx3090";
    return out;
  }
  InstanceView create(const CreateRequest& asked) {
    auto made = core->create_instance(context, anna, asked);
    EXPECT_TRUE(made.ok()) << made.error().message();
    return *made;
  }
  InstanceView show(const InstanceView& view) { return *core->instance(anna, view.row.id.str()); }
  std::string start_code(const InstanceView& view) {
    const auto got = core->start(context, anna, view.row.id.str());
    return got.ok() ? "" : got.error().code();
  }
  std::vector<std::string> event_types(const InstanceView& view) {
    std::vector<std::string> out;
    const auto page = core->events(anna, view.row.id.str(), 0, 1'000);
    for (const auto& event : page->items) out.push_back(event.type);
    return out;
  }

  RequestContext context{"req", Actor::kUser};
  CoreConfig config;
  MemoryStore store{"cluster"};
  ManualClock clock;
  SeededRandom random{7};
  ImageCatalogue catalogue{{{"autodl/base:trixie", {"debian:trixie"}, "localhost/base", "", 0}}};
  SecretBox secrets{{}};
  ModelNode node{clock, two_cards()};
  std::unique_ptr<ControlCore> core;
  AccountId anna;
};

}  // namespace autodl::testing_support
