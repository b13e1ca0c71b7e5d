// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Delivery of real cards: the driver's files and the device nodes, without hook programs. Inside,
// all of the driver is in one folder:
//
//   /usr/lib/autodl-nvidia/                     prepared on the host, mounted read-only
//     libcuda.so.550.163.01                     empty here; the host's file is mounted over it
//     libcuda.so.1 -> libcuda.so.550.163.01     soname links, made on the host
//     bin/nvidia-smi                            likewise
//
// No path of the image is ever resolved by the host for it. Image and user can't widen it:
// NVIDIA_VISIBLE_DEVICES and the like mean nothing.
#pragma once

#include <string>
#include <vector>

#include "gpu/card_provider.hpp"
#include "gpu/inventory.hpp"

namespace autodl {

inline constexpr const char* kDriverFolderInside = "/usr/lib/autodl-nvidia";

// The user-space part of the driver, as found on the host.
struct DriverFiles {
  std::string version;
  struct Library {
    std::string path;    // "/usr/lib/x86_64-linux-gnu/libcuda.so.550.163.01"
    std::string soname;  // "libcuda.so.1"; empty: none
    bool operator==(const Library&) const = default;
  };
  std::vector<Library> libraries;     // sorted by path; each file name once
  std::vector<std::string> binaries;  // "/usr/bin/nvidia-smi"
  std::vector<DeviceNode> control;    // nvidiactl, nvidia-uvm, nvidia-uvm-tools
  bool operator==(const DriverFiles&) const = default;
};

// Looks below `root` ("/" but for tests) for all that carries exactly this version in its name.
// Errors: bad_driver_version, driver_files_missing (no libcuda of that version: says where it
// looked).
Result<DriverFiles> find_driver_files(const std::string& root, const std::string& version);

// Pure: what these cards need inside. `folder` is the prepared folder on the host.
// Error: unknown_card (not in the inventory, or without a minor number).
Result<CardDelivery> plan_delivery(const Inventory& inventory, const std::vector<CardId>& cards,
                                   const DriverFiles& files, const std::string& folder);

// Makes the prepared folder `base`/VERSION (atomically; kept where it exists) and names it.
Result<std::string> prepare_driver_folder(const std::string& base, const DriverFiles& files);

// Real cards. Asks the inventory at each prepare, so that a driver upgraded under a running node is
// delivered as it is now.
class DriverCardProvider final : public CardProvider {
 public:
  DriverCardProvider(GpuInventory& inventory, std::string folder, std::string root = "/")
      : inventory_(inventory), folder_(std::move(folder)), root_(std::move(root)) {}

  Result<CardDelivery> prepare(const InstanceId& instance,
                               const std::vector<CardId>& cards) override;
  Status report_load(const InstanceId&, const std::vector<CardLoad>&) override { return {}; }
  Status release(const InstanceId&, const std::vector<CardId>&) override { return {}; }

 private:
  GpuInventory& inventory_;
  std::string folder_;
  std::string root_;
};

}  // namespace autodl
