// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "sim/gpu_state.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "sim/models.hpp"

namespace autodl::sim {
namespace {

class StateFile : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/autodl-sim-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    path_ = folder_ + "/run/state";
    auto cards = parse_card_list(kDefaultCards);
    ASSERT_TRUE(cards.ok());
    cards_ = *cards;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  GpuState make() {
    auto state = GpuState::create(path_, cards_);
    EXPECT_TRUE(state.ok()) << state.error().message();
    return std::move(state).value();
  }
  CardId id(std::size_t index) const { return CardId(cards_[index].uuid); }

  std::string folder_, path_;
  std::vector<adlsim_card> cards_;
};

TEST(CardList_AsPeopleWrite, MakesTheCards) {
  const auto cards = parse_card_list(" rtx3090:2 , NVIDIA A100-PCIE-40GB,RTX 4090 : 1");
  ASSERT_TRUE(cards.ok()) << cards.error().message();
  ASSERT_EQ(cards->size(), 4U);
  EXPECT_STREQ((*cards)[1].name, "NVIDIA GeForce RTX 3090");
  EXPECT_STREQ((*cards)[2].name, "NVIDIA A100-PCIE-40GB");
  EXPECT_STREQ((*cards)[3].name, "NVIDIA GeForce RTX 4090");
  EXPECT_STRNE((*cards)[0].uuid, (*cards)[1].uuid);
}

TEST(CardList_Bad_IsRefused, AndSaysWhy) {
  for (const char* bad : {"", ",", "RTX 3090:0", "RTX 3090:-1", "RTX 3090:", "RTX 3090:2x",
                          "Voodoo 2", "RTX 3090:2,", "RTX 3090:99999999999999999999"}) {
    const auto cards = parse_card_list(bad);
    ASSERT_FALSE(cards.ok()) << bad;
    EXPECT_EQ(cards.error().code(), "bad_card_list") << bad;
    EXPECT_NE(cards.error().remedy().find("RTX 4090"), std::string::npos);
  }
  EXPECT_EQ(parse_card_list("RTX 3090:33").error().code(), "too_many_cards");
  EXPECT_TRUE(parse_card_list("RTX 3090:32").ok());
}

TEST_F(StateFile, Created_HoldsTheCards) {
  auto state = make();
  const auto snapshot = state.snapshot();
  ASSERT_TRUE(snapshot.ok());
  ASSERT_EQ(snapshot->cards.size(), 5U);
  EXPECT_STREQ(snapshot->cards[4].name, "NVIDIA A100-PCIE-40GB");
  EXPECT_STREQ(snapshot->head.driver_version, "550.163.01");
  struct stat info{};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0644U);
}

TEST_F(StateFile, SameCardsAgain_KeepLoadsAndFaults) {
  {
    auto state = make();
    ASSERT_TRUE(state.set_load(id(1), 70, 1LL << 30).ok());
    ASSERT_TRUE(state.set_fault(id(2), ADLSIM_CARD_LOST).ok());
  }
  const auto again = make().snapshot();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->cards[1].gpu_percent, 70);
  EXPECT_EQ(again->cards[2].fault, ADLSIM_CARD_LOST);
  cards_.pop_back();
  EXPECT_EQ(make().snapshot()->cards[1].gpu_percent, 0);
}

TEST_F(StateFile, Load_MovesTheFigures) {
  auto state = make();
  const auto idle = state.snapshot()->cards[0];
  ASSERT_TRUE(state.set_load(id(0), 250, 1LL << 60).ok());
  const auto busy = state.snapshot()->cards[0];
  EXPECT_EQ(busy.gpu_percent, 100);
  EXPECT_EQ(busy.memory_used, busy.memory_total - busy.memory_reserved);
  EXPECT_GT(busy.temperature_c, idle.temperature_c);
  EXPECT_GT(busy.power_mw, idle.power_mw);
  EXPECT_LE(busy.power_mw, busy.power_limit_mw);
  EXPECT_GT(busy.sm_mhz, idle.sm_mhz);
  EXPECT_EQ(state.snapshot()->cards[1].gpu_percent, 0);
  EXPECT_EQ(state.set_load(CardId("GPU-none"), 1, 0).error().code(), "unknown_card");
  EXPECT_EQ(state.set_figure(id(0), "colour", 1).error().code(), "unknown_figure");
}

TEST_F(StateFile, Xid79_LosesTheCard) {
  auto state = make();
  ASSERT_TRUE(state.raise_xid(id(0), 79).ok());
  const auto card = state.snapshot()->cards[0];
  EXPECT_EQ(card.xid, 79U);
  EXPECT_EQ(card.xid_count, 1U);
  EXPECT_EQ(card.fault, ADLSIM_CARD_LOST);
}

// A writer killed before the header's flip has changed nothing: garbage in the slot that is not
// active is never looked at.
TEST_F(StateFile, WriterKilledMidway_LeavesTheOldState) {
  auto state = make();
  ASSERT_TRUE(state.set_load(id(0), 40, 0).ok());  // slot 1 is active now
  const UniqueFd fd(open(path_.c_str(), O_RDWR | O_CLOEXEC));
  const std::vector<char> garbage(sizeof(adlsim_slot), 'x');
  ASSERT_EQ(pwrite(fd.get(), garbage.data(), garbage.size(), sizeof(adlsim_header)),
            static_cast<ssize_t>(garbage.size()));
  EXPECT_EQ(state.snapshot()->cards.at(0).gpu_percent, 40);
  ASSERT_TRUE(state.set_load(id(0), 50, 0).ok());
  EXPECT_EQ(state.snapshot()->cards.at(0).gpu_percent, 50);
}

TEST_F(StateFile, ForeignFile_IsRefused) {
  std::filesystem::create_directories(folder_ + "/run");
  const UniqueFd fd(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  ASSERT_EQ(write(fd.get(), "hello", 5), 5);
  EXPECT_EQ(GpuState::open(path_).error().code(), "bad_state_file");
  EXPECT_EQ(GpuState::open(folder_ + "/none").error().kind(), ErrorKind::kNotFound);
  EXPECT_TRUE(GpuState::create(path_, cards_).ok());  // made anew
}

// Readers never see half a change: each write keeps the sum of two figures of two cards.
TEST_F(StateFile, ReadersBesideWriters_SeeWholeStates) {
  auto first = make();
  auto second = GpuState::open(path_);
  ASSERT_TRUE(second.ok());
  const auto write_many = [](GpuState& state, int seed) {
    for (int i = 0; i < 400; ++i) {
      const auto status = state.change([&](Snapshot& snapshot) -> Status {
        snapshot.cards[0].gpu_percent = (i * 7 + seed) % 101;
        snapshot.cards[1].gpu_percent = 100 - snapshot.cards[0].gpu_percent;
        return {};
      });
      ASSERT_TRUE(status.ok()) << status.error().message();
    }
  };
  write_many(first, 1);
  std::atomic<bool> done = false;
  std::thread a([&] { write_many(first, 2); });
  std::thread b([&] { write_many(*second, 3); });
  std::thread reader([&] {
    while (!done) {
      const auto snapshot = GpuState::read(path_);
      ASSERT_TRUE(snapshot.ok()) << snapshot.error().message();
      ASSERT_EQ(snapshot->cards[0].gpu_percent + snapshot->cards[1].gpu_percent, 100);
    }
  });
  a.join();
  b.join();
  done = true;
  reader.join();
  EXPECT_EQ(first.snapshot()->head.sequence, 1U + 3 * 400);
}

}  // namespace
}  // namespace autodl::sim
