// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The catalogue's name of a card, from what its driver says. (What people write is matched against
// it by model/card_types.hpp.)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace autodl {

// "NVIDIA GeForce RTX 3090" → "RTX 3090", "NVIDIA A100-PCIE-40GB" → "A100 40GB", "NVIDIA H100 PCIe"
// with 81559 MiB → "H100 80GB": models that exist in several sizes always carry theirs.
std::string card_type_of(std::string_view driver_name, std::optional<std::int64_t> memory_bytes);

}  // namespace autodl
