// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Errors as RFC 9457 problems.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "http/message.hpp"

namespace autodl::http {

// The answer for an error. status 0: by the error's kind. A kInternal error's text stays in the
// log; the client sees "internal error". extra: more members (candidates, server_time).
Response problem_response(const Error& error, std::string_view request_id, int status = 0,
                          boost::json::object extra = {});

// "unknown_card" -> "Unknown card".
std::string title_of_code(std::string_view code);

}  // namespace autodl::http
