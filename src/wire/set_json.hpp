// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// DesiredSet and ObservedSet as JSON, both ways (frames 2 and 3 of the link). Decoding treats the
// text as hostile: every length, count, number and id is bounded and the error names the field.
// Unknown fields are skipped, so that neighbouring versions of the link understand each other.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "model/desired.hpp"
#include "model/observed.hpp"

namespace autodl {

std::string encode_desired(const DesiredSet& set);
std::string encode_observed(const ObservedSet& set);

// kInvalid "bad_desired_set" / "bad_observed_set", message "instances[3].run.id: not a ULID".
Result<DesiredSet> decode_desired(std::string_view text);
Result<ObservedSet> decode_observed(std::string_view text);

}  // namespace autodl
