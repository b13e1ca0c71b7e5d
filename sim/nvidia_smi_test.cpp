// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "sim/gpu_state.hpp"
#include "sim/models.hpp"

namespace autodl::sim {
namespace {

using testing::HasSubstr;

class Smi : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/autodl-sim-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    const auto cards = parse_card_list("RTX 3090:1,A100 40GB:1");
    ASSERT_TRUE(cards.ok());
    id_ = CardId((*cards)[0].uuid);
    auto made = GpuState::create(folder_ + "/state", *cards);
    ASSERT_TRUE(made.ok());
    state_ = std::make_unique<GpuState>(std::move(made).value());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string run(const std::string& arguments, const std::string& state = "state") {
    const auto command = "AUTODL_SIM_STATE=" + folder_ + "/" + state + " " + SIM_NVIDIA_SMI + " " +
                         arguments + " 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    std::string out;
    char buffer[4096];
    for (std::size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.append(buffer, n);
    code_ = WEXITSTATUS(pclose(pipe));
    return out;
  }

  std::string folder_;
  CardId id_;
  std::unique_ptr<GpuState> state_;
  int code_ = 0;
};

TEST_F(Smi, List_NamesEachCard) {
  EXPECT_EQ(run("-L"), "GPU 0: NVIDIA GeForce RTX 3090 (UUID: " + id_.str() +
                           ")\nGPU 1: NVIDIA A100-PCIE-40GB (UUID: GPU-5a1e0001-20f1-4000-8000-"
                           "000000000002)\n");
  EXPECT_EQ(code_, 0);
}

TEST_F(Smi, Query_PrintsCsv) {
  ASSERT_TRUE(state_->set_load(id_, 61, 1000LL << 20).ok());
  EXPECT_EQ(run("--query-gpu=index,name,memory.total,memory.used,utilization.gpu,fan.speed "
                "--format=csv,noheader,nounits"),
            "0, NVIDIA GeForce RTX 3090, 24576, 1000, 61, 60\n"
            "1, NVIDIA A100-PCIE-40GB, 40960, 0, 0, [N/A]\n");
  EXPECT_EQ(run("--query-gpu=driver_version,memory.total --format=csv -i 1"),
            "driver_version, memory.total [MiB]\n550.163.01, 40960 MiB\n");
  EXPECT_THAT(run("--query-gpu=name,colour --format=csv"), HasSubstr("\"colour\" is not a valid"));
  EXPECT_EQ(code_, 2);
  EXPECT_THAT(run("--query-gpu=name"), HasSubstr("--format"));
  EXPECT_EQ(code_, 2);
  EXPECT_THAT(run("--query-gpu=name --format=csv -i 7"), HasSubstr("No devices"));
  EXPECT_NE(code_, 0);
}

// Every line of a table is as wide as its frame.
void expect_even(const std::string& table) {
  const auto rule = table.find('+');
  const auto width = table.find('\n', rule) - rule;
  for (std::size_t at = rule, end; at < table.size(); at = end + 1) {
    end = table.find('\n', at);
    if (end > at) EXPECT_EQ(end - at, width) << table.substr(at, end - at);
  }
}

TEST_F(Smi, Table_SaysThatCardsAreSimulated) {
  ASSERT_TRUE(
      state_
          ->set_processes(
              id_,
              {{.pid = getpid(), .memory_bytes = 1 << 20, .sm_percent = 1, .memory_percent = 1}})
          .ok());
  ASSERT_TRUE(state_->set_load(id_, 61, 1000LL << 20).ok());
  const auto table = run("");
  EXPECT_EQ(code_, 0);
  EXPECT_THAT(table, HasSubstr("SIMULATED"));
  EXPECT_THAT(table, HasSubstr("NVIDIA GeForce RTX 3090"));
  EXPECT_THAT(table, HasSubstr("1000MiB / 24576MiB"));
  EXPECT_THAT(table, HasSubstr("Driver Version: 550.163.01   CUDA Version: 12.4"));
  EXPECT_THAT(table, HasSubstr(std::to_string(getpid())));
  ASSERT_TRUE(state_->set_processes(id_, {}).ok());
  EXPECT_THAT(run(""), HasSubstr("No running processes found"));
  expect_even(table);
}

TEST_F(Smi, FaultsAndNoCard_AreTold) {
  ASSERT_TRUE(state_->set_fault(id_, ADLSIM_CARD_LOST).ok());
  const auto table = run("");
  EXPECT_THAT(table, HasSubstr("GPU is lost"));
  expect_even(table);
  EXPECT_THAT(run("-L"), HasSubstr("GPU is lost"));
  run("--query-gpu=name --format=csv");
  EXPECT_EQ(code_, 15);
  EXPECT_THAT(run("", "none"), HasSubstr("couldn't communicate with the NVIDIA driver"));
  EXPECT_EQ(code_, 9);
  EXPECT_EQ((run("--nonsense"), code_), 2);
}

}  // namespace
}  // namespace autodl::sim
