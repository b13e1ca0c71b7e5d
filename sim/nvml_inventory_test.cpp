// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// NvmlInventory with a real child process and the simulated library: the path of real cards.
#include "gpu/nvml_inventory.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "sim/gpu_state.hpp"
#include "sim/models.hpp"

namespace autodl::sim {
namespace {

using namespace std::chrono_literals;
constexpr auto kLong = 20s;

class Nvml : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/autodl-sim-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    const auto cards = parse_card_list("RTX 3090:1,A100 40GB:2");
    ASSERT_TRUE(cards.ok());
    for (const auto& card : *cards) ids_.emplace_back(card.uuid);
    auto made = GpuState::create(folder_ + "/state", *cards);
    ASSERT_TRUE(made.ok());
    state_ = std::make_unique<GpuState>(std::move(made).value());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  NvmlConfig config(const std::string& library = SIM_LIBRARY) const {
    return {.child_argv = {SIM_NVML_CHILD, "--library", library},
            .env = {{ADLSIM_ENV, folder_ + "/state"}},
            .backoff_first = 1ms,
            .backoff_max = 2ms};
  }
  // Past the backoff, which is about a millisecond here.
  static Result<Inventory> again(NvmlInventory& nvml) {
    for (;;) {
      auto answer = nvml.query(kLong);
      if (answer.ok() || answer.error().code() != "nvml_backoff") return answer;
    }
  }

  std::string folder_;
  std::vector<CardId> ids_;
  std::unique_ptr<GpuState> state_;
  SystemClock clock_;
};

TEST_F(Nvml, Cards_AreToldWithWhatTheyCanTell) {
  NvmlInventory nvml(config(), clock_);
  ASSERT_TRUE(state_->set_load(ids_[1], 55, 3LL << 30).ok());
  ASSERT_TRUE(
      state_
          ->set_processes(
              ids_[1],
              {{.pid = 4242, .memory_bytes = 3LL << 30, .sm_percent = 55, .memory_percent = 9}})
          .ok());
  const auto inventory = nvml.query(kLong);
  ASSERT_TRUE(inventory.ok()) << inventory.error().message();
  EXPECT_EQ(inventory->driver_version, "550.163.01");
  EXPECT_EQ(inventory->cuda_version, 12040);
  EXPECT_TRUE(inventory->simulated);
  ASSERT_EQ(inventory->cards.size(), 3U);
  const auto& geforce = inventory->cards[0];
  EXPECT_EQ(geforce.id, ids_[0]);
  EXPECT_EQ(geforce.model, "NVIDIA GeForce RTX 3090");
  EXPECT_EQ(geforce.pci_bus_id, "00000000:3B:00.0");
  EXPECT_EQ(geforce.compute_capability, 86);
  EXPECT_EQ(geforce.memory_bytes, 24576LL << 20);
  EXPECT_EQ(geforce.memory_used_bytes, geforce.memory_reserved_bytes);
  EXPECT_EQ(geforce.utilization_percent, 0);
  EXPECT_EQ(geforce.processes, std::vector<CardProcess>{});
  const auto& a100 = inventory->cards[1];
  EXPECT_EQ(a100.fan_percent, std::nullopt);  // passive: can't be told, not zero
  EXPECT_EQ(a100.utilization_percent, 55);
  EXPECT_EQ(a100.processes, (std::vector<CardProcess>{{4242, 3LL << 30}}));
  EXPECT_EQ(a100.problem, "");
}

TEST_F(Nvml, NextQuery_AsksTheSameChildAndSeesTheChange) {
  NvmlInventory nvml(config(), clock_);
  ASSERT_TRUE(nvml.query(kLong).ok());
  const auto pid = nvml.child_pid();
  ASSERT_TRUE(state_->set_load(ids_[0], 33, 0).ok());
  EXPECT_EQ(nvml.query(kLong)->cards[0].utilization_percent, 33);
  EXPECT_EQ(nvml.child_pid(), pid);
  EXPECT_EQ(nvml.restarts(), 0U);
}

TEST_F(Nvml, LostCard_KeepsItsUuidAlsoAfterTheChildDied) {
  NvmlInventory nvml(config(), clock_);
  ASSERT_TRUE(nvml.query(kLong).ok());
  ASSERT_TRUE(state_->set_fault(ids_[1], ADLSIM_CARD_LOST).ok());
  for (int round = 0; round < 2; ++round) {
    const auto inventory = again(nvml);
    ASSERT_TRUE(inventory.ok()) << inventory.error().message();
    ASSERT_EQ(inventory->cards.size(), 3U);
    EXPECT_EQ(inventory->cards[1].id, ids_[1]);
    EXPECT_EQ(inventory->cards[1].problem, "GPU is lost");
    EXPECT_EQ(inventory->cards[0].problem, "");
    kill(nvml.child_pid(), SIGKILL);
    EXPECT_EQ(nvml.query(kLong).error().code(), "nvml_crashed");
  }
}

TEST_F(Nvml, HungDriver_TimesOutAndComesBack) {
  NvmlInventory nvml(config(), clock_);
  ASSERT_TRUE(nvml.query(kLong).ok());
  ASSERT_TRUE(state_->set_fault(ids_[0], ADLSIM_CARD_HANG).ok());
  const auto before = clock_.steady_now();
  EXPECT_EQ(nvml.query(100ms).error().code(), "nvml_timeout");
  EXPECT_LT(clock_.steady_now() - before, 10s);
  EXPECT_EQ(nvml.child_pid(), 0);
  EXPECT_EQ(nvml.restarts(), 1U);
  ASSERT_TRUE(state_->set_fault(ids_[0], ADLSIM_CARD_OK).ok());
  EXPECT_TRUE(again(nvml).ok());
}

TEST_F(Nvml, CrashedDriver_IsReportedWithItsSignal) {
  NvmlInventory nvml(config(), clock_);
  ASSERT_TRUE(state_->set_fault(ids_[2], ADLSIM_CARD_CRASH).ok());
  const auto answer = nvml.query(kLong);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), "nvml_crashed");
  EXPECT_NE(answer.error().message().find("signal 11"), std::string::npos)
      << answer.error().message();
  ASSERT_TRUE(state_->set_fault(ids_[2], ADLSIM_CARD_OK).ok());
  EXPECT_TRUE(again(nvml).ok());
}

TEST_F(Nvml, AskedTooSoonAfterACrash_WaitsOutTheBackoff) {
  ManualClock clock;
  auto slow = config();
  slow.backoff_first = 1s;
  slow.backoff_max = 3s;
  NvmlInventory nvml(slow, clock);
  ASSERT_TRUE(state_->set_fault(ids_[0], ADLSIM_CARD_CRASH).ok());
  for (const auto delay : {1s, 2s, 3s, 3s}) {
    EXPECT_EQ(nvml.query(kLong).error().code(), "nvml_crashed");
    clock.advance(delay - 1ms);
    EXPECT_EQ(nvml.query(kLong).error().code(), "nvml_backoff");
    EXPECT_EQ(nvml.child_pid(), 0);
    clock.advance(1ms);
  }
  ASSERT_TRUE(state_->set_fault(ids_[0], ADLSIM_CARD_OK).ok());
  EXPECT_TRUE(nvml.query(kLong).ok());
  EXPECT_EQ(nvml.restarts(), 4U);
}

TEST_F(Nvml, CardThatTellsNoFigures_IsListedWithAProblem) {
  NvmlInventory nvml(config(), clock_);
  ASSERT_TRUE(state_->set_fault(ids_[0], ADLSIM_CARD_ERROR).ok());
  const auto inventory = nvml.query(kLong);
  ASSERT_TRUE(inventory.ok());
  EXPECT_EQ(inventory->cards[0].id, ids_[0]);
  EXPECT_EQ(inventory->cards[0].temperature_c, std::nullopt);
  EXPECT_EQ(inventory->cards[0].memory_used_bytes, std::nullopt);
  EXPECT_NE(inventory->cards[0].problem, "");
}

TEST_F(Nvml, DriverThatRefuses_SaysWhyAndKeepsTheChild) {
  NvmlInventory nvml(config(), clock_);
  ASSERT_TRUE(state_->set_driver_fault(ADLSIM_DRIVER_MISMATCH).ok());
  const auto answer = nvml.query(kLong);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), "nvml_failed");
  EXPECT_NE(answer.error().message().find("version mismatch"), std::string::npos);
  ASSERT_TRUE(state_->set_driver_fault(ADLSIM_DRIVER_OK).ok());
  EXPECT_TRUE(nvml.query(kLong).ok());
  EXPECT_EQ(nvml.restarts(), 0U);
}

TEST_F(Nvml, NoLibrary_IsAMachineWithoutCards) {
  for (const char* library : {"/nowhere/libnvidia-ml.so.1", "libautodl-none.so.1"}) {
    NvmlInventory nvml(config(library), clock_);
    const auto inventory = nvml.query(kLong);
    ASSERT_TRUE(inventory.ok()) << inventory.error().message();
    EXPECT_EQ(*inventory, Inventory{});
  }
  NvmlInventory broken(config("/etc/hostname"), clock_);
  EXPECT_EQ(broken.query(kLong).error().code(), "nvml_failed");
}

TEST_F(Nvml, ProgramThatIsNoChild_IsReported) {
  auto wrong = config();
  wrong.child_argv = {"/bin/true"};
  NvmlInventory gone(wrong, clock_);
  EXPECT_EQ(gone.query(kLong).error().code(), "nvml_crashed");
  wrong.child_argv = {"/bin/sh", "-c", "echo not json >&3"};
  NvmlInventory garbage(wrong, clock_);
  EXPECT_EQ(garbage.query(kLong).error().code(), "nvml_crashed");
  wrong.child_argv = {"/nowhere/autodld"};
  NvmlInventory absent(wrong, clock_);
  EXPECT_FALSE(absent.query(kLong).ok());
}

TEST_F(Nvml, InventoryGone_TakesItsChildAlong) {
  auto nvml = std::make_unique<NvmlInventory>(config(), clock_);
  ASSERT_TRUE(nvml->query(kLong).ok());
  const auto pid = nvml->child_pid();
  nvml.reset();
  EXPECT_EQ(kill(pid, 0), -1);
}

// A node killed by SIGKILL can't end its child: the child must notice, also while it hangs.
TEST_F(Nvml, ParentGoneWhileTheDriverHangs_EndsTheChild) {
  ASSERT_TRUE(state_->set_fault(ids_[0], ADLSIM_CARD_HANG).ok());
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  UniqueFd ours(pair[0]);
  UniqueFd theirs(pair[1]);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, theirs.get(), 3);
  posix_spawn_file_actions_addclosefrom_np(&files, 4);
  std::vector<std::string> words = {SIM_NVML_CHILD, "--library", SIM_LIBRARY};
  std::string env = std::string(ADLSIM_ENV) + "=" + folder_ + "/state";
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  char* envp[] = {env.data(), nullptr};
  pid_t pid = 0;
  ASSERT_EQ(posix_spawn(&pid, SIM_NVML_CHILD, &files, nullptr, argv, envp), 0);
  posix_spawn_file_actions_destroy(&files);
  theirs.reset();
  ASSERT_EQ(write(ours.get(), "query\n", 6), 6);
  pollfd answer{.fd = ours.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&answer, 1, 100), 0);  // it hangs
  ours.reset();
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace autodl::sim
