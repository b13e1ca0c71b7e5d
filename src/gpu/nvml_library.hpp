// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// NvmlLibrary: libnvidia-ml opened by dlopen, and read into our values. Used in the NVML child
// alone: any call here may hang or crash. One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpu/inventory.hpp"

namespace autodl {

class NvmlLibrary {
 public:
  NvmlLibrary() = default;
  ~NvmlLibrary();
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  // No such library: an inventory without driver and cards. Error: nvml_failed, with NVML's words.
  Result<Inventory> read(const std::string& path);

 private:
  using Device = void*;
  template <class Function>
  Function symbol(const char* name) const;
  Status open(const std::string& path);
  std::string error_text(int result) const;
  std::optional<std::string> text(const char* name, Device device) const;
  template <class Value = int>
  std::optional<Value> number(const char* name, Device device) const;
  std::optional<int> number_by(const char* name, Device device, int selector) const;
  void read_memory(Device device, CardInfo& card) const;
  std::optional<std::vector<CardProcess>> processes(Device device) const;
  CardInfo read_card(unsigned index) const;

  void* library_ = nullptr;
  bool initialised_ = false;
};

}  // namespace autodl
