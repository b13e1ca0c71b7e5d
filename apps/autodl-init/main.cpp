// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// autodl-init: PID 1 of an instance. No arguments: all it needs comes by /run/autodl/boot and the
// control stream (docs/dev/contracts.md, section 4).
#include <sodium.h>
#include <unistd.h>

#include <cstdio>

#include "init/init.hpp"

int main() {
  if (getpid() != 1) {
    std::fputs("autodl-init: runs as process 1 of an instance only\n", stderr);
    return 64;
  }
  if (sodium_init() < 0) return 70;
  autodl::init::Init init({});
  if (const auto begun = init.begin(); !begun.ok()) {
    std::fprintf(stderr, "autodl-init: %s\n", begun.error().message().c_str());
    return 70;
  }
  return init.run();
}
