// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// dial_init: a connected TCP socket to an instance's init with the authenticated header written.
#pragma once

#include <string>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "wire/proxy_v2.hpp"

namespace autodl {

struct InitDial {
  std::string address;  // the instance's, IPv4
  std::uint16_t port = kInitPort;
  std::string key;  // the run's
  StreamTarget target;
  StreamAddress client{"127.0.0.1", 0};
  StreamAddress endpoint{"127.0.0.1", 0};
};

// Non-blocking, TCP_NODELAY. Tries again while nobody listens yet, for at most the limit:
// kUnavailable not_ready.
Result<UniqueFd> dial_init(const InitDial& dial, Random& random, Millis limit);

}  // namespace autodl
