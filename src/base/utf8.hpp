// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// UTF-8, for what strangers' bytes go into JSON.
#pragma once

#include <string>
#include <string_view>

namespace autodl {

// Length of the sequence at the front of a text that is not empty; 0 where it is wrong, -1 where it
// is cut off.
int utf8_sequence(std::string_view text);

// Wrong bytes replaced by U+FFFD.
std::string to_valid_utf8(std::string_view text);

}  // namespace autodl
