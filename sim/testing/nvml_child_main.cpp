// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The NVML child alone, for tests: `autodld nvml-child` without the rest of autodld.
#include "gpu/nvml_inventory.hpp"

int main(int argc, char** argv) {
  return autodl::nvml_child_main(argc, argv);
}
