// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "agent/host_key.hpp"

#include <sodium.h>

#include <array>
#include <string_view>

namespace autodl {

namespace {

void put_u32(std::string& out, std::size_t value) {
  for (int shift = 24; shift >= 0; shift -= 8)
    out.push_back(static_cast<char>((value >> shift) & 0xFFU));
}

void put_string(std::string& out, std::string_view text) {
  put_u32(out, text.size());
  out.append(text);
}

std::string base64(std::string_view bytes) {
  std::string out(sodium_base64_ENCODED_LEN(bytes.size(), sodium_base64_VARIANT_ORIGINAL), '\0');
  sodium_bin2base64(out.data(), out.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                    bytes.size(), sodium_base64_VARIANT_ORIGINAL);
  out.resize(out.size() - 1);
  return out;
}

}  // namespace

// Format: OpenSSH's PROTOCOL.key, without cipher.
HostKey make_host_key(Random& random) {
  std::array<unsigned char, crypto_sign_SEEDBYTES> seed;
  std::array<unsigned char, crypto_sign_PUBLICKEYBYTES> public_key;
  std::array<unsigned char, crypto_sign_SECRETKEYBYTES> secret_key;
  std::array<unsigned char, 4> check;
  random.fill(seed);
  random.fill(check);
  crypto_sign_seed_keypair(public_key.data(), secret_key.data(), seed.data());
  sodium_memzero(seed.data(), seed.size());
  const std::string_view open(reinterpret_cast<const char*>(public_key.data()), public_key.size());
  const std::string_view secret(reinterpret_cast<const char*>(secret_key.data()),
                                secret_key.size());
  const std::string_view checked(reinterpret_cast<const char*>(check.data()), check.size());

  std::string public_blob;
  put_string(public_blob, "ssh-ed25519");
  put_string(public_blob, open);

  std::string inner;
  inner.append(checked).append(checked);
  put_string(inner, "ssh-ed25519");
  put_string(inner, open);
  put_string(inner, secret);
  put_string(inner, "autodl");
  for (char pad = 1; inner.size() % 8 != 0; ++pad) inner.push_back(pad);

  std::string blob("openssh-key-v1");
  blob.push_back('\0');
  put_string(blob, "none");
  put_string(blob, "none");
  put_string(blob, "");
  put_u32(blob, 1);
  put_string(blob, public_blob);
  put_string(blob, inner);

  const auto body = base64(blob);
  HostKey key;
  key.private_pem = "-----BEGIN OPENSSH PRIVATE KEY-----\n";
  for (std::size_t at = 0; at < body.size(); at += 70)
    key.private_pem += body.substr(at, 70) + "\n";
  key.private_pem += "-----END OPENSSH PRIVATE KEY-----\n";
  key.public_line = "ssh-ed25519 " + base64(public_blob);
  sodium_memzero(secret_key.data(), secret_key.size());
  return key;
}

}  // namespace autodl
