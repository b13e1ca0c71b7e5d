// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "gpu/card_delivery.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "gpu/elf_soname.hpp"
#include "gpu/testing/fake_gpu_inventory.hpp"

namespace autodl {
namespace {

namespace fs = std::filesystem;

// A folder that looks like the root of a host with driver 550.163.01.
class DriverRoot : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/autodl-delivery-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
    const auto libraries = root_ + "/usr/lib/x86_64-linux-gnu";
    fs::create_directories(libraries);
    fs::create_directories(root_ + "/usr/bin");
    fs::create_directories(root_ + "/dev");
    // Real shared libraries, so that sonames are read and not guessed.
    fs::copy_file(fs::canonical("/lib/x86_64-linux-gnu/libm.so.6"),
                  libraries + "/libnvidia-ml.so.550.163.01");
    std::ofstream(libraries + "/libcuda.so.550.163.01") << "no ELF";
    std::ofstream(libraries + "/libcuda.so.535.1") << "older";
    fs::create_symlink("libcuda.so.550.163.01", libraries + "/libcuda.so.1");
    std::ofstream(root_ + "/usr/bin/nvidia-smi") << "x";
    fs::permissions(root_ + "/usr/bin/nvidia-smi", fs::perms::owner_all);
    std::ofstream(root_ + "/dev/nvidiactl") << "";
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string root_;
};

TEST(ElfSoname_OfLibraries, IsRead) {
  EXPECT_EQ(elf_soname("/lib/x86_64-linux-gnu/libc.so.6"), "libc.so.6");
  EXPECT_EQ(elf_soname("/lib/x86_64-linux-gnu/libm.so.6"), "libm.so.6");
  EXPECT_EQ(elf_soname("/proc/self/exe"), std::nullopt);
  EXPECT_EQ(elf_soname("/etc/hostname"), std::nullopt);
  EXPECT_EQ(elf_soname("/nowhere"), std::nullopt);
}

TEST_F(DriverRoot, OneVersion_IsFoundWhole) {
  const auto files = find_driver_files(root_, "550.163.01");
  ASSERT_TRUE(files.ok()) << files.error().message();
  ASSERT_EQ(files->libraries.size(), 2U);
  EXPECT_TRUE(files->libraries[0].path.ends_with("libcuda.so.550.163.01"));
  EXPECT_EQ(files->libraries[0].soname, "");
  EXPECT_EQ(files->libraries[1].soname, "libm.so.6");
  EXPECT_EQ(files->binaries.size(), 1U);
  ASSERT_EQ(files->control.size(), 1U);
}

TEST_F(DriverRoot, OtherOrBadVersion_IsRefused) {
  EXPECT_EQ(find_driver_files(root_, "560.1").error().code(), "driver_files_missing");
  for (const char* bad : {"", "../..", "550/..", "..", ".", "5 5", "550.x"})
    EXPECT_EQ(find_driver_files(root_, bad).error().code(), "bad_driver_version") << bad;
}

TEST_F(DriverRoot, PreparedFolder_HasPlaceholdersAndLinks) {
  const auto files = find_driver_files(root_, "550.163.01");
  ASSERT_TRUE(files.ok());
  for (int again = 0; again < 2; ++again) {
    const auto folder = prepare_driver_folder(root_ + "/state", *files);
    ASSERT_TRUE(folder.ok()) << folder.error().message();
    EXPECT_EQ(fs::file_size(*folder + "/libnvidia-ml.so.550.163.01"), 0U);
    EXPECT_EQ(fs::read_symlink(*folder + "/libm.so.6"), "libnvidia-ml.so.550.163.01");
    EXPECT_EQ(fs::read_symlink(*folder + "/libm.so"), "libm.so.6");
    EXPECT_TRUE(fs::exists(*folder + "/bin/nvidia-smi"));
  }
  // Nothing half-made is left beside it.
  EXPECT_EQ(std::distance(fs::directory_iterator(root_ + "/state"), fs::directory_iterator{}), 1);
}

TEST_F(DriverRoot, Delivery_HasGrantedCardsOnly) {
  auto inventory = FakeGpuInventory::of(3);
  inventory.inventory.cards[2].minor = 7;
  inventory.inventory.cards[1].problem = "GPU is lost";
  const auto files = find_driver_files(root_, "550.163.01");
  ASSERT_TRUE(files.ok());
  const auto plan = [&](std::vector<CardId> cards) {
    return plan_delivery(inventory.inventory, cards, *files, "/prepared");
  };
  const auto one = plan({CardId("GPU-fake-2")});
  ASSERT_TRUE(one.ok());
  ASSERT_EQ(one->devices.size(), 2U);
  EXPECT_EQ(one->devices[0].container_path, "/dev/nvidia7");
  EXPECT_TRUE(one->devices[1].host_path.ends_with("nvidiactl"));
  EXPECT_EQ(one->mounts.front().host_path, "/prepared");
  EXPECT_EQ(one->mounts.size(), 4U);
  EXPECT_EQ(plan({}).value(), CardDelivery{});
  EXPECT_EQ(plan({CardId("GPU-other")}).error().code(), "unknown_card");
  EXPECT_EQ(plan({CardId("GPU-fake-1")}).error().code(), "unknown_card");  // lost
}

}  // namespace
}  // namespace autodl
