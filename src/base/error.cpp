// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"

#include <fmt/format.h>

#include <system_error>

namespace autodl {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalid: return "invalid";
    case ErrorKind::kPayment: return "payment";
    case ErrorKind::kNotFound: return "not_found";
    case ErrorKind::kDenied: return "denied";
    case ErrorKind::kConflict: return "conflict";
    case ErrorKind::kExhausted: return "exhausted";
    case ErrorKind::kUnavailable: return "unavailable";
    case ErrorKind::kUnsupported: return "unsupported";
    case ErrorKind::kInternal: return "internal";
  }
  return "internal";
}

int http_status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalid: return 422;
    case ErrorKind::kPayment: return 402;
    case ErrorKind::kNotFound: return 404;
    case ErrorKind::kDenied: return 403;
    case ErrorKind::kConflict: return 409;
    case ErrorKind::kExhausted: return 429;
    case ErrorKind::kUnavailable: return 503;
    case ErrorKind::kUnsupported: return 501;
    case ErrorKind::kInternal: return 500;
  }
  return 500;
}

Error Error::context(std::string_view action) const {
  return Error(kind_, code_, fmt::format("{}: {}", action, message_), remedy_);
}

Error errno_error(std::string_view action, int errno_value, ErrorKind kind) {
  return Error(kind, "os_error",
               fmt::format("{}: {}", action, std::generic_category().message(errno_value)));
}

}  // namespace autodl
