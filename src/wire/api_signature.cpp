// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "wire/api_signature.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <charconv>
#include <vector>

namespace autodl {

namespace {

std::string to_hex(const unsigned char* bytes, std::size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

std::string sorted_query(std::string_view query) {
  std::vector<std::string_view> pairs;
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    if (end > 0) pairs.push_back(query.substr(0, end));
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  std::sort(pairs.begin(), pairs.end());
  return fmt::format("{}", fmt::join(pairs, "&"));
}

Error malformed(std::string_view what) {
  return Error(ErrorKind::kDenied, "bad_signature",
               fmt::format("the Authorization header {}", what),
               "see docs/api/contract.md, Signing in");
}

bool good_nonce(std::string_view nonce) {
  return nonce.size() >= 16 && nonce.size() <= 64 &&
         std::all_of(nonce.begin(), nonce.end(), [](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-';
         });
}

}  // namespace

std::string string_to_sign(const SignedParts& parts) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", kSignatureScheme, parts.method, parts.path,
                     sorted_query(parts.query), parts.content_sha256, parts.idempotency_key,
                     parts.time_s, parts.nonce);
}

std::string sha256_hex(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  ADL_ASSERT(EVP_Digest(bytes.data(), bytes.size(), digest, &length, EVP_sha256(), nullptr) == 1);
  return to_hex(digest, length);
}

std::string hmac_sha256_hex(std::string_view key, std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  ADL_ASSERT(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                  reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest,
                  &length) != nullptr);
  return to_hex(digest, length);
}

std::string print_signature_header(const SignatureHeader& header) {
  return fmt::format("{} key={}, time={}, nonce={}, signature={}", kSignatureScheme,
                     header.access_key, header.time_s, header.nonce, header.signature);
}

Result<SignatureHeader> parse_signature_header(std::string_view text) {
  if (!text.starts_with(kSignatureScheme)) return malformed("does not name ADL1-HMAC-SHA256");
  text.remove_prefix(kSignatureScheme.size());
  std::string_view key, time, nonce, signature;
  while (!text.empty()) {
    const auto end = std::min(text.find(','), text.size());
    auto part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    const auto equals = part.find('=');
    if (equals == std::string_view::npos) return malformed("has a part without '='");
    const auto name = part.substr(0, equals);
    const auto value = part.substr(equals + 1);
    auto* slot = name == "key"         ? &key
                 : name == "time"      ? &time
                 : name == "nonce"     ? &nonce
                 : name == "signature" ? &signature
                                       : nullptr;
    if (slot == nullptr) return malformed("has an unknown part");
    if (!slot->empty()) return malformed("names a part twice");
    *slot = value;
  }
  SignatureHeader header;
  header.access_key = key;
  header.nonce = nonce;
  header.signature = signature;
  const auto parsed = std::from_chars(time.data(), time.data() + time.size(), header.time_s);
  if (key.empty() || key.size() > 64) return malformed("has no access key");
  if (time.empty() || parsed.ec != std::errc{} || parsed.ptr != time.data() + time.size())
    return malformed("has no time in Unix seconds");
  if (!good_nonce(nonce)) return malformed("has no nonce of 16 to 64 letters, digits, '_' or '-'");
  if (signature.size() != 64) return malformed("has no signature of 64 hex digits");
  return header;
}

bool equal_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace autodl
