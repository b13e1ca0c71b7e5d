// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Error: an expected failure, as a value. The kind says what the caller does about it.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace autodl {

// What the caller does; fixes the HTTP status and the retry rule (one table, http_status_of).
enum class ErrorKind {
  kInvalid,      // fix the request (422)
  kPayment,      // balance too low (402)
  kNotFound,     // no such object, or not yours (404)
  kDenied,       // not signed in or not allowed (401/403)
  kConflict,     // re-read the state (409)
  kExhausted,    // later, with backoff (429)
  kUnavailable,  // peer lost; repeat with the same idempotency key (503)
  kUnsupported,  // not here (501)
  kInternal,     // a bug: logged and counted (500)
};

std::string_view to_string(ErrorKind kind);
int http_status_of(ErrorKind kind);

// code: a stable slug of the module that failed ("unknown_card"), for programs.
// message: lower case, names the object and the action; may be shown to the user unless kInternal.
// remedy: what to do, for the user; may be empty.
class Error {
 public:
  Error(ErrorKind kind, std::string code, std::string message, std::string remedy = {})
      : kind_(kind),
        code_(std::move(code)),
        message_(std::move(message)),
        remedy_(std::move(remedy)) {}

  ErrorKind kind() const { return kind_; }
  const std::string& code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& remedy() const { return remedy_; }

  // Prepends what was being done: "pull image 'x': registry answered 503".
  Error context(std::string_view action) const;
  bool operator==(const Error&) const = default;

 private:
  ErrorKind kind_;
  std::string code_;
  std::string message_;
  std::string remedy_;
};

// An Error from errno: "open '/x': permission denied". kind is kInternal unless it is told.
Error errno_error(std::string_view action, int errno_value, ErrorKind kind = ErrorKind::kInternal);

}  // namespace autodl
