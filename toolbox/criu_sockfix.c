// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
//
// Preloaded into CRIU. Current kernels answer EOPNOTSUPP to SO_PASSCRED and SO_PASSSEC on sockets
// that can't carry credentials (TCP, UDP); CRIU 4.1 asks for both on every socket and gives up, so
// no process with a TCP socket could be dumped. We answer what older kernels did: "off", and accept
// "set to off" as done.
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_credential_option(int level, int option) {
  return level == SOL_SOCKET && (option == SO_PASSCRED || option == SO_PASSSEC);
}

int getsockopt(int fd, int level, int option, void* value, socklen_t* length) {
  long result = syscall(SYS_getsockopt, fd, level, option, value, length);
  if (result < 0 && errno == EOPNOTSUPP && is_credential_option(level, option)) {
    memset(value, 0, *length);
    return 0;
  }
  return (int)result;
}

int setsockopt(int fd, int level, int option, const void* value, socklen_t length) {
  long result = syscall(SYS_setsockopt, fd, level, option, value, length);
  if (result < 0 && errno == EOPNOTSUPP && is_credential_option(level, option) &&
      length >= sizeof(int) && *(const int*)value == 0)
    return 0;
  return (int)result;
}
