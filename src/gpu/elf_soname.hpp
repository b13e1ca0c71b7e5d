// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The DT_SONAME of a shared library: the name under which programs ask for it.
#pragma once

#include <optional>
#include <string>

namespace autodl {

// nullopt: not a 64-bit little-endian shared library, damaged, or without a soname. Reads at most
// 1 MiB of string table; follows no pointer out of the file.
std::optional<std::string> elf_soname(const std::string& path);

}  // namespace autodl
