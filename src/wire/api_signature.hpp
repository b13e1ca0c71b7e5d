// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The signature of an API request by access key (docs/api/contract.md, "Signing in"): the string
// that is signed, the HMAC, and the Authorization header, both ways. Test vectors for other
// implementations: docs/api/vectors.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace autodl {

inline constexpr std::string_view kSignatureScheme = "ADL1-HMAC-SHA256";
inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";

struct SignedParts {
  std::string_view method;           // upper case
  std::string_view path;             // as sent, without query
  std::string_view query;            // as sent, without '?'
  std::string_view content_sha256;   // header X-Autodl-Content-SHA256
  std::string_view idempotency_key;  // empty where none
  std::int64_t time_s = 0;           // Unix seconds
  std::string_view nonce;
};

std::string string_to_sign(const SignedParts& parts);
std::string sha256_hex(std::string_view bytes);
std::string hmac_sha256_hex(std::string_view key, std::string_view bytes);

struct SignatureHeader {
  std::string access_key;
  std::int64_t time_s = 0;
  std::string nonce;
  std::string signature;  // lower-case hex
};

std::string print_signature_header(const SignatureHeader& header);
// kDenied "bad_signature" where it is malformed (the scheme, a missing or doubled part, a nonce
// outside 16-64 characters of [A-Za-z0-9_-]).
Result<SignatureHeader> parse_signature_header(std::string_view text);

// Equal in constant time for equal lengths.
bool equal_secret(std::string_view a, std::string_view b);

}  // namespace autodl
