// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The HTTP answer for an error of the core or of a handler: the status where the error's kind
// alone does not say it, and the members beyond the usual ones (server_time, candidates).
#pragma once

#include <boost/json/object.hpp>
#include <string_view>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "http/message.hpp"

namespace autodl {

int api_status_of(const Error& error);

http::Response failure_response(const Error& error, std::string_view request_id, const Clock& clock,
                                boost::json::object extra = {});

}  // namespace autodl
