// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Signing in (docs/api/contract.md): in two steps, because the first needs no core.
//   read_credentials: on the loop's thread: form, clock, hash of the body.
//   sign_in:          on the core's thread: token or signature, nonce, role.
#pragma once

#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "control/core.hpp"
#include "http/exchange.hpp"
#include "wire/api_signature.hpp"

namespace autodl {

inline constexpr std::int64_t kClockSkewMax_s = 300;

// How a route's body is signed.
enum class BodySigning {
  kWhole,     // X-Autodl-Content-SHA256 is the hash of the body, which was read
  kUnsigned,  // UNSIGNED-PAYLOAD, or the hash in X-Autodl-Part-SHA256, which somebody else checks
};

struct Credentials {
  std::string token;  // of "Bearer"; else empty and:
  SignatureHeader signature;
  std::string string_to_sign;
  bool mutating = false;
};

struct Caller {
  AccountId account;
  Role role = Role::kUser;
  bool is_operator() const { return role == Role::kOperator; }
  Actor actor() const { return is_operator() ? Actor::kOperator : Actor::kUser; }
};

Result<Credentials> read_credentials(const http::Request& request, BodySigning signing,
                                     const Clock& clock);
Result<Caller> sign_in(ControlCore& core, const Credentials& credentials);

// The caller must be an operator: kDenied "operator_only".
Status require_operator(const Caller& caller);

}  // namespace autodl
