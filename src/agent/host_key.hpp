// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// An instance's SSH host key: ed25519, in the forms that OpenSSH reads. Pure but for the seed.
#pragma once

#include <string>

#include "base/random.hpp"

namespace autodl {

struct HostKey {
  std::string private_pem;  // "-----BEGIN OPENSSH PRIVATE KEY-----…"
  std::string public_line;  // "ssh-ed25519 AAAA…"
};

HostKey make_host_key(Random& random);

}  // namespace autodl
