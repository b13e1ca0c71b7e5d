// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The Authorization header, and the string that is signed: it does not depend on the order of the
// query's pairs.
#include "wire/api_signature.hpp"

#include <string>

#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace autodl;
  const auto text = fuzz::text_of(data, size);
  if (const auto header = parse_signature_header(text); header.ok()) {
    const auto again = parse_signature_header(print_signature_header(header.value()));
    fuzz::require(again.ok() && again.value().access_key == header.value().access_key &&
                      again.value().time_s == header.value().time_s &&
                      again.value().nonce == header.value().nonce &&
                      again.value().signature == header.value().signature,
                  "a header reads as the same");
  }
  SignedParts parts{.method = "GET", .path = "/v1/instances", .query = text};
  const std::string straight = string_to_sign(parts);
  const auto cut = text.find('&');
  if (cut == std::string_view::npos) return 0;
  const std::string turned =
      std::string(text.substr(cut + 1)) + "&" + std::string(text.substr(0, cut));
  parts.query = turned;
  fuzz::require(string_to_sign(parts) == straight, "the pairs' order is not signed");
  return 0;
}
