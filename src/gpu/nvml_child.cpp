// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The NVML child: one request line in, one answer line out, until the parent goes.
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>

#include "gpu/nvml_inventory.hpp"
#include "gpu/nvml_library.hpp"
#include "gpu/nvml_protocol.hpp"

namespace autodl {
namespace {

constexpr int kChannel = 3;

// The main thread may sit in a hung driver call: this one notices that the parent has gone.
void leave_with_parent() {
  for (;;) {
    pollfd watched{.fd = kChannel, .events = POLLRDHUP, .revents = 0};
    if (poll(&watched, 1, -1) < 0 && errno == EINTR) continue;
    _exit(0);
  }
}

bool write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto done = write(kChannel, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  return true;
}

}  // namespace

int nvml_child_main(int argc, char** argv) {
  std::string path = "libnvidia-ml.so.1";
  for (int i = 1; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], "--library") == 0) path = argv[i + 1];
  std::thread(leave_with_parent).detach();
  NvmlLibrary library;
  for (;;) {
    char request = 0;
    const auto got = read(kChannel, &request, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return 0;
    if (request != '\n') continue;  // a request is a line; its words mean nothing yet
    const auto inventory = library.read(path);
    const auto answer = inventory.ok() ? print_inventory(*inventory)
                                       : print_nvml_error(inventory.error().message());
    if (!write_all(answer)) return 0;
  }
}

}  // namespace autodl
