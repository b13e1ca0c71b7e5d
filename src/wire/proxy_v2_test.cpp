// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "wire/proxy_v2.hpp"

#include <gtest/gtest.h>

namespace autodl {
namespace {

const std::string kKey(kRunKeyBytes, 'k');

ProxyHeader sample(StreamTarget target) {
  SeededRandom random(7);
  return {target, {"10.0.0.7", 50122}, {"10.0.0.1", 20001}, make_nonce(random)};
}

TEST(ProxyV2, RoundTrip_KeepsEveryField) {
  for (const StreamTarget target :
       {StreamTarget{StreamKind::kControl, 0}, StreamTarget{StreamKind::kSsh, 0},
        StreamTarget{StreamKind::kExec, 0}, StreamTarget{StreamKind::kPty, 0},
        StreamTarget{StreamKind::kTcp, 8888}}) {
    const ProxyHeader header = sample(target);
    const auto bytes = build_proxy_header(kKey, header);
    ASSERT_TRUE(bytes.ok());
    ASSERT_EQ(proxy_header_size(*bytes).value(), bytes.value().size());
    const auto parsed = parse_proxy_header(kKey, *bytes);
    ASSERT_TRUE(parsed.ok()) << parsed.error().message();
    EXPECT_EQ(parsed.value().target, target);
    EXPECT_EQ(parsed.value().client, header.client);
    EXPECT_EQ(parsed.value().endpoint, header.endpoint);
    EXPECT_EQ(parsed.value().nonce, header.nonce);
  }
}

TEST(ProxyV2, MixedFamilies_AreMappedAndReadBack) {
  ProxyHeader header = sample({StreamKind::kSsh, 0});
  header.client = {"2001:db8::5", 1};
  const auto parsed = parse_proxy_header(kKey, build_proxy_header(kKey, header).value());
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.value().client.address, "2001:db8::5");
  EXPECT_EQ(parsed.value().endpoint.address, "10.0.0.1");
}

TEST(ProxyV2, HeaderSize_AsksForNoByteOfWhatFollows) {
  const std::string bytes = build_proxy_header(kKey, sample({StreamKind::kSsh, 0})).value();
  for (std::size_t have = 0; have < kProxyFixedBytes; ++have)
    EXPECT_EQ(proxy_header_size(bytes.substr(0, have)).value(), kProxyFixedBytes);
  for (std::size_t have = kProxyFixedBytes; have <= bytes.size(); ++have)
    EXPECT_EQ(proxy_header_size(bytes.substr(0, have)).value(), bytes.size());
}

TEST(ProxyV2, AnyChangedBit_IsRefused) {
  const std::string bytes = build_proxy_header(kKey, sample({StreamKind::kTcp, 80})).value();
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      EXPECT_FALSE(parse_proxy_header(kKey, changed).ok()) << at << "." << bit;
    }
  }
}

TEST(ProxyV2, AnotherKey_IsDenied) {
  const std::string bytes = build_proxy_header(kKey, sample({StreamKind::kSsh, 0})).value();
  const auto parsed = parse_proxy_header(std::string(kRunKeyBytes, 'x'), bytes);
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().code(), "bad_hmac");
  EXPECT_FALSE(parse_proxy_header("", bytes).ok());
}

TEST(ProxyV2, AnyTruncation_IsRefused) {
  const std::string bytes = build_proxy_header(kKey, sample({StreamKind::kSsh, 0})).value();
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(parse_proxy_header(kKey, bytes.substr(0, size)).ok()) << size;
}

TEST(ProxyV2, ForeignSpeakers_AreSeenAtOnce) {
  EXPECT_FALSE(proxy_header_size("GET / HTTP/1.1").ok());
  EXPECT_FALSE(proxy_header_size("SSH").ok());
  std::string huge = build_proxy_header(kKey, sample({StreamKind::kSsh, 0})).value();
  huge[14] = '\x7f';
  EXPECT_FALSE(proxy_header_size(huge).ok());
}

TEST(ProxyV2, StreamTarget_RefusesInitsOwnPortAndNonsense) {
  EXPECT_EQ(parse_stream_target("tcp:8888").value().port, 8888);
  for (const char* text :
       {"tcp:65022", "tcp:0", "tcp:", "tcp:65536", "tcp:80x", "tcp:-1", "", "ss", "ssh ", "TCP:80"})
    EXPECT_FALSE(parse_stream_target(text).ok()) << text;
  EXPECT_FALSE(build_proxy_header(kKey, sample({StreamKind::kTcp, kInitPort})).ok());
}

TEST(ProxyV2, StreamAddress_ReadsBothFamiliesOnlyNumeric) {
  EXPECT_EQ(parse_stream_address("10.0.0.7:50122").value(), (StreamAddress{"10.0.0.7", 50122}));
  EXPECT_EQ(parse_stream_address("[fd00::1]:22").value(), (StreamAddress{"fd00::1", 22}));
  EXPECT_EQ(to_string(StreamAddress{"fd00::1", 22}), "[fd00::1]:22");
  for (const char* text : {"localhost:22", "10.0.0.7", "10.0.0.7:", "10.0.0.7:70000", "fd00::1:22",
                           "[fd00::1]", ":22", "10.0.0.256:1"})
    EXPECT_FALSE(parse_stream_address(text).ok()) << text;
}

TEST(NonceCache, Replay_IsRefusedAndMemoryIsBounded) {
  SeededRandom random(1);
  NonceCache cache(3);
  const Nonce first = make_nonce(random);
  EXPECT_TRUE(cache.accept(first));
  EXPECT_FALSE(cache.accept(first));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(cache.accept(make_nonce(random)));
  EXPECT_TRUE(cache.accept(first));  // forgotten: only the newest three are kept
}

TEST(HmacSha256, KnownVector) {  // RFC 4231's test case 1, key padded to 32 bytes by zeros
  std::string key(20, '\x0b');
  key.resize(kRunKeyBytes, '\0');
  std::string hex;
  for (const char c : hmac_sha256(key, "Hi There")) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += kDigits[static_cast<unsigned char>(c) >> 4];
    hex += kDigits[static_cast<unsigned char>(c) & 15];
  }
  EXPECT_EQ(hex, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
}

}  // namespace
}  // namespace autodl
