// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "gpu/cdi.hpp"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "gpu/testing/fake_gpu_inventory.hpp"

namespace autodl {
namespace {

TEST(CdiSpec_OfMachine, NamesEachUsableCardOnce) {
  auto fake = FakeGpuInventory::of(3);
  fake.inventory.cards[0].minor = 4;
  fake.inventory.cards[1].problem = "GPU is lost";
  DriverFiles files;
  files.version = "550.163.01";
  files.libraries = {{"/usr/lib64/libcuda.so.550.163.01", "libcuda.so.1"}};
  files.control = {{"/dev/nvidiactl", "/dev/nvidiactl", 195, 255}};
  const auto spec = boost::json::parse(cdi_spec(fake.inventory, files, "/prepared"));
  EXPECT_EQ(spec.at("cdiVersion"), "0.5.0");
  EXPECT_EQ(spec.at("kind"), "nvidia.com/gpu");
  std::vector<std::string> names;
  for (const auto& device : spec.at("devices").as_array())
    names.emplace_back(device.at("name").as_string().c_str());
  EXPECT_EQ(names, (std::vector<std::string>{"0", "GPU-fake-0", "2", "GPU-fake-2", "all"}));
  EXPECT_EQ(spec.at_pointer("/devices/0/containerEdits/deviceNodes/0/path"), "/dev/nvidia4");
  EXPECT_EQ(spec.at_pointer("/devices/4/containerEdits/deviceNodes").as_array().size(), 2U);
  EXPECT_EQ(spec.at_pointer("/containerEdits/mounts/1/containerPath"),
            "/usr/lib/autodl-nvidia/libcuda.so.550.163.01");
  EXPECT_EQ(spec.at_pointer("/containerEdits/deviceNodes/0/path"), "/dev/nvidiactl");
}

TEST(CdiSpec_WithoutCards_IsStillValid, HasNoDevice) {
  const auto spec = boost::json::parse(cdi_spec(Inventory{}, DriverFiles{}, "/x")).as_object();
  EXPECT_TRUE(spec.at("devices").as_array().empty());
}

}  // namespace
}  // namespace autodl
