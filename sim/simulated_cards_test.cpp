// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "sim/simulated_cards.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "gpu/nvml_inventory.hpp"
#include "sim/models.hpp"

namespace autodl::sim {
namespace {

namespace fs = std::filesystem;
const InstanceId kInstance("01KBF8Z5T30000000000000001");

class Cards : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/autodl-sim-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    const auto cards = parse_card_list(kDefaultCards);
    ASSERT_TRUE(cards.ok());
    for (const auto& card : *cards) ids_.emplace_back(card.uuid);
    auto made = SimulatedCards::make(
        {folder_ + "/state", folder_ + "/sim", SIM_LIBRARY, SIM_NVIDIA_SMI}, *cards);
    ASSERT_TRUE(made.ok()) << made.error().message();
    cards_ = std::make_unique<SimulatedCards>(std::move(made).value());
  }
  void TearDown() override { fs::remove_all(folder_); }
  Snapshot view() const {
    auto read = GpuState::read(folder_ + "/sim/instances/" + kInstance.str() + "/state");
    EXPECT_TRUE(read.ok());
    return read.value_or({});
  }

  std::string folder_;
  std::vector<CardId> ids_;
  std::unique_ptr<SimulatedCards> cards_;
};

TEST_F(Cards, Prepared_HoldsTheGrantedCardsInOrder) {
  const auto delivery = cards_->prepare(kInstance, {ids_[4], ids_[1]});
  ASSERT_TRUE(delivery.ok()) << delivery.error().message();
  ASSERT_EQ(delivery->devices.size(), 5U);
  EXPECT_EQ(delivery->devices[0].container_path, "/dev/nvidia4");
  EXPECT_EQ(delivery->devices[0].host_path, "/dev/null");
  ASSERT_EQ(delivery->mounts.size(), 2U);
  EXPECT_EQ(delivery->mounts[0].container_path, "/usr/lib/autodl-nvidia");
  EXPECT_EQ(delivery->mounts[1].container_path, "/run/autodl-nvidia");
  EXPECT_TRUE(fs::exists(delivery->mounts[0].host_path + "/libnvidia-ml.so"));
  EXPECT_TRUE(fs::exists(delivery->mounts[0].host_path + "/bin/nvidia-smi"));
  EXPECT_TRUE(fs::exists(delivery->mounts[1].host_path + "/state"));
  ASSERT_EQ(view().cards.size(), 2U);
  EXPECT_STREQ(view().cards[0].name, "NVIDIA A100-PCIE-40GB");
  EXPECT_EQ(ids_[1].str(), view().cards[1].uuid);
}

// What a program inside sees through NVML: its own cards alone, counted from 0.
TEST_F(Cards, NvmlInside_SeesOnlyTheGrantedCards) {
  const auto delivery = cards_->prepare(kInstance, {ids_[4], ids_[1]});
  ASSERT_TRUE(delivery.ok());
  SystemClock clock;
  NvmlInventory nvml({.child_argv = {SIM_NVML_CHILD, "--library",
                                     delivery->mounts[0].host_path + "/libnvidia-ml.so.1"},
                      .env = {{ADLSIM_ENV, delivery->mounts[1].host_path + "/state"}}},
                     clock);
  const auto inside = nvml.query(std::chrono::seconds{20});
  ASSERT_TRUE(inside.ok()) << inside.error().message();
  ASSERT_EQ(inside->cards.size(), 2U);
  EXPECT_EQ(inside->cards[0].id, ids_[4]);
  EXPECT_EQ(inside->cards[0].index, 0);
  EXPECT_EQ(inside->cards[0].minor, 4);
  EXPECT_EQ(inside->cards[1].id, ids_[1]);
  EXPECT_EQ(inside->cards[1].index, 1);
}

TEST_F(Cards, BadRequest_IsRefused) {
  EXPECT_EQ(cards_->prepare(kInstance, {CardId("GPU-x")}).error().code(), "unknown_card");
  EXPECT_EQ(cards_->prepare(InstanceId("../x"), {ids_[0]}).error().code(), "bad_instance_id");
  EXPECT_EQ(cards_->prepare(kInstance, {}).value(), CardDelivery{});
}

TEST_F(Cards, Load_ShowsOnHostAndInside_AndEndsAtRelease) {
  ASSERT_TRUE(cards_->prepare(kInstance, {ids_[1]}).ok());
  const CardLoad load{ids_[1], 60, 2LL << 30, {getpid()}};
  ASSERT_TRUE(cards_->report_load(kInstance, {load}).ok());
  EXPECT_EQ(view().cards.at(0).gpu_percent, 60);
  EXPECT_EQ(view().cards.at(0).process_count, 1U);
  EXPECT_EQ(view().cards.at(0).processes[0].memory_bytes, 2LL << 30);
  EXPECT_EQ(cards_->state().snapshot()->cards[1].gpu_percent, 60);
  EXPECT_EQ(cards_->state().snapshot()->cards[0].gpu_percent, 0);
  // A fault that a test sets on the host is seen inside at the next report.
  ASSERT_TRUE(cards_->state().set_fault(ids_[1], ADLSIM_CARD_LOST).ok());
  ASSERT_TRUE(cards_->report_load(kInstance, {load}).ok());
  EXPECT_EQ(view().cards.at(0).fault, ADLSIM_CARD_LOST);
  for (int again = 0; again < 2; ++again) ASSERT_TRUE(cards_->release(kInstance, {ids_[1]}).ok());
  EXPECT_EQ(cards_->state().snapshot()->cards[1].memory_used, 0);
  EXPECT_EQ(cards_->state().snapshot()->cards[1].process_count, 0U);
  EXPECT_FALSE(fs::exists(folder_ + "/sim/instances/" + kInstance.str()));
}

TEST(PidInside_OfOwnProcess, IsThePid) {
  EXPECT_EQ(pid_inside(getpid()), getpid());
  EXPECT_EQ(pid_inside(4'194'304'000), 4'194'304'000);
}

}  // namespace
}  // namespace autodl::sim
