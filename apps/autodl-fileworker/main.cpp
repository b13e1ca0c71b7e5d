// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// autodl-fileworker ROOT: started by the node with descriptors 3 (channel), 4 (user namespace) and
// 5 (mount namespace). Enters, drops what it can, serves, ends with its channel.
#include <fcntl.h>
#include <sodium.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "fileworker/confine.hpp"
#include "fileworker/worker.hpp"

namespace {

autodl::Status run(const char* root) {
  using namespace autodl;
  using namespace autodl::fileworker;
  UniqueFd channel(3);
  {
    const UniqueFd user(4);
    const UniqueFd mount(5);
    ADL_TRY_STATUS(enter_namespaces(user.get(), mount.get(), root));
  }
  UniqueFd root_fd(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root_fd.valid()) return errno_error("open the root", errno);
  ADL_TRY_STATUS(drop_privileges());
  return Worker(RootDir(std::move(root_fd)), std::move(channel)).serve();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2 || sodium_init() < 0) {
    std::fputs("usage: autodl-fileworker ROOT (started by the node)\n", stderr);
    return 64;
  }
  const autodl::Status status = run(arguments[1]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "autodl-fileworker: %s\n", status.error().message().c_str());
  return 1;
}
