// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The OpenAPI 3.1 document of routes' descriptions. Pure.
#pragma once

#include <string>
#include <vector>

#include "control/api/about.hpp"

namespace autodl {

std::string openapi_document(const std::vector<About>& routes, std::string_view version);

}  // namespace autodl
