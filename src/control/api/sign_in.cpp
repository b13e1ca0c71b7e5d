// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "control/api/sign_in.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace autodl {
namespace {

Error bad_signature(std::string message) {
  return Error(ErrorKind::kDenied, "bad_signature", std::move(message),
               "sign as docs/api/contract.md says; docs/api/vectors.json has examples");
}

Status check_body_hash(const http::Request& request, BodySigning signing,
                       std::string_view content_hash) {
  if (signing == BodySigning::kUnsigned) {
    if (content_hash == kUnsignedPayload) return {};
    const auto part_hash = request.headers.get("X-Autodl-Part-SHA256");
    if (!part_hash.empty() && part_hash == content_hash) return {};
    return bad_signature(
        "X-Autodl-Content-SHA256 must be UNSIGNED-PAYLOAD or the part's hash here");
  }
  if (!equal_secret(content_hash, sha256_hex(request.body)))
    return bad_signature("X-Autodl-Content-SHA256 is not the hash of the body");
  return {};
}

}  // namespace

Result<Credentials> read_credentials(const http::Request& request, BodySigning signing,
                                     const Clock& clock) {
  constexpr std::string_view kBearer = "Bearer ";
  const auto header = request.headers.get("Authorization");
  if (header.empty() || request.headers.count("Authorization") != 1)
    return Error(ErrorKind::kDenied, "missing_credentials",
                 "this call needs one Authorization header", "sign in: autodl login");
  Credentials credentials;
  credentials.mutating = request.method != "GET" && request.method != "HEAD";
  if (header.size() > kBearer.size() &&
      http::equal_ignoring_case(header.substr(0, kBearer.size()), kBearer)) {
    credentials.token = std::string(header.substr(kBearer.size()));
    return credentials;
  }
  if (header.substr(0, kSignatureScheme.size()) != kSignatureScheme)
    return Error(ErrorKind::kDenied, "missing_credentials",
                 "the Authorization header is neither Bearer nor ADL1-HMAC-SHA256",
                 "sign in: autodl login");
  ADL_TRY(signature, parse_signature_header(header));
  const std::int64_t now_s = to_unix_ms(clock.utc_now()) / 1'000;
  if (signature.time_s > now_s + kClockSkewMax_s || signature.time_s < now_s - kClockSkewMax_s)
    return Error(ErrorKind::kDenied, "clock_skew",
                 fmt::format("the request's time differs from the server's by more than {} s",
                             kClockSkewMax_s),
                 "set this machine's clock right");
  const auto content_hash = request.headers.get("X-Autodl-Content-SHA256");
  ADL_TRY_STATUS(check_body_hash(request, signing, content_hash));
  SignedParts parts;
  parts.method = request.method;
  parts.path = request.path;
  parts.query = request.query;
  parts.content_sha256 = content_hash;
  parts.idempotency_key = request.headers.get("Idempotency-Key");
  parts.time_s = signature.time_s;
  parts.nonce = signature.nonce;
  credentials.string_to_sign = string_to_sign(parts);
  credentials.signature = std::move(signature);
  return credentials;
}

Result<Caller> sign_in(ControlCore& core, const Credentials& credentials) {
  Caller caller;
  if (!credentials.token.empty()) {
    ADL_TRY(account, core.account_of_token(credentials.token));
    caller.account = std::move(account);
  } else {
    ADL_TRY(key, core.signing_key(credentials.signature.access_key));
    const auto expected = hmac_sha256_hex(key.secret_key, credentials.string_to_sign);
    if (!equal_secret(expected, credentials.signature.signature))
      return bad_signature("the signature does not match the request");
    if (credentials.mutating)
      ADL_TRY_STATUS(core.use_nonce(credentials.signature.access_key, credentials.signature.nonce));
    caller.account = std::move(key.account);
  }
  ADL_TRY(view, core.account(caller.account));
  caller.role = view.row.role;
  return caller;
}

Status require_operator(const Caller& caller) {
  if (caller.is_operator()) return {};
  return Error(ErrorKind::kDenied, "operator_only", "only an operator may do this",
               "sign in as an operator");
}

}  // namespace autodl
