// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "wire/api_signature.hpp"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <sstream>

namespace autodl {
namespace {

TEST(ApiSignature_Vectors, AgreeWithAnIndependentImplementation) {
  std::ifstream file(ADL_SOURCE_DIR "/docs/api/vectors.json");
  std::stringstream text;
  text << file.rdbuf();
  const auto vectors = boost::json::parse(text.str());
  ASSERT_GE(vectors.as_array().size(), 4U);
  for (const auto& row : vectors.as_array()) {
    const auto get = [&](const char* key) { return std::string(row.at(key).as_string()); };
    const auto method = get("method"), path = get("path"), query = get("query"),
               hash = get("content_sha256"), idempotency = get("idempotency_key"),
               nonce = get("nonce");
    const auto signed_text =
        string_to_sign({method, path, query, hash, idempotency, row.at("time").as_int64(), nonce});
    EXPECT_EQ(signed_text, get("string_to_sign"));
    EXPECT_EQ(hmac_sha256_hex(get("secret_key"), signed_text), get("signature"));
    if (hash != kUnsignedPayload) EXPECT_EQ(sha256_hex(get("body")), hash);
    const auto header = parse_signature_header(get("authorization"));
    ASSERT_TRUE(header.ok());
    EXPECT_EQ(print_signature_header(*header), get("authorization"));
    EXPECT_EQ(header->signature, get("signature"));
  }
}

TEST(ApiSignature_MalformedHeaders, AreRefused) {
  const std::string good =
      "ADL1-HMAC-SHA256 key=AK1, time=1, nonce=0123456789abcdef, signature=" + std::string(64, 'a');
  ASSERT_TRUE(parse_signature_header(good).ok());
  for (const std::string& bad :
       {std::string(), std::string("Bearer x"), good + ", key=AK2", good + ", x=1", good + ", x",
        std::string("ADL1-HMAC-SHA256 key=AK1, time=x, nonce=0123456789abcdef, signature=") +
            std::string(64, 'a'),
        std::string("ADL1-HMAC-SHA256 key=AK1, time=1, nonce=short, signature=") +
            std::string(64, 'a'),
        std::string("ADL1-HMAC-SHA256 key=AK1, time=1, nonce=0123456789abcdef, signature=aa")})
    EXPECT_FALSE(parse_signature_header(bad).ok()) << bad;
}

}  // namespace
}  // namespace autodl
