// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The CDI spec (Container Device Interface) of this machine's cards, for podman and docker beside
// us. Pure: the node writes the text to /etc/cdi when it changes.
#pragma once

#include <string>

#include "gpu/card_delivery.hpp"

namespace autodl {

// JSON of CDI 0.5.0, kind nvidia.com/gpu: a device by index, by UUID, and "all". No hooks. Cards
// with a problem are left out. `folder`: the prepared folder (prepare_driver_folder).
std::string cdi_spec(const Inventory& inventory, const DriverFiles& files,
                     const std::string& folder);

}  // namespace autodl
