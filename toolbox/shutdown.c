// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
//
// shutdown, poweroff, halt inside an instance: ask init to end it (POST /v1/shutdown on its
// socket). The disk is kept and billing of the card ends. Without a time it happens at once, which
// is what people mean here.
//   shutdown [now | +MINUTES]   shutdown -c   poweroff   halt
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static const char kSocket[] = "/run/autodl/api.sock";
static const char kPending[] = "/run/autodl-shutdown.pid";  // locked by the process that waits
static const char kRequest[] =
    "POST /v1/shutdown HTTP/1.1\r\nHost: autodl\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
enum { kMinutesMax = 60 * 24 * 30 };

static const char* self = "shutdown";

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", self, what);
  return 1;
}

// The status code of init's answer, or -1.
static int post_shutdown(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  struct timeval limit = {.tv_sec = 10};
  char answer[512];
  size_t length = 0;
  int code = -1, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  memcpy(address.sun_path, kSocket, sizeof kSocket);
  if (fd < 0) return -1;
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (connect(fd, (struct sockaddr*)&address, sizeof address) == 0 &&
      send(fd, kRequest, sizeof kRequest - 1, MSG_NOSIGNAL) == (ssize_t)sizeof kRequest - 1) {
    ssize_t got;
    while (length < sizeof answer - 1 &&
           (got = recv(fd, answer + length, sizeof answer - 1 - length, 0)) > 0)
      length += (size_t)got;
    answer[length] = 0;
    if (sscanf(answer, "HTTP/1.%*1d %3d", &code) != 1) code = -1;
  }
  close(fd);
  return code;
}

static int end_now(void) {
  int code = post_shutdown();
  if (code >= 200 && code < 300) {
    printf("The instance is shutting down; its disk is kept.\n");
    return 0;
  }
  if (code == 401 || code == 403) return fail("only root may end the instance (try sudo)");
  if (code > 0)
    return fail("init refused to end the instance; stop it from outside with `autodl stop`");
  return fail(
      "init does not answer on /run/autodl/api.sock; stop the instance from outside with `autodl "
      "stop`");
}

// A file descriptor on the locked file of pending shutdowns, or -1 where one is pending already.
static int lock_pending(void) {
  int fd = open(kPending, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

static int end_later(long minutes) {
  int fd;
  if (geteuid() != 0) return fail("only root may end the instance (try sudo)");
  fd = lock_pending();
  if (fd < 0) return fail("a shutdown is pending already: cancel it with `shutdown -c`");
  printf("The instance ends in %ld minutes; `shutdown -c` cancels that.\n", minutes);
  fflush(stdout);
  if (daemon(0, 0) != 0) return fail("can't wait in the background");
  if (ftruncate(fd, 0) != 0 || dprintf(fd, "%d\n", getpid()) < 0) return 1;
  for (unsigned left = (unsigned)minutes * 60; left > 0;) left = sleep(left);
  return end_now();
}

static int cancel(void) {
  char text[32] = "";
  int fd = open(kPending, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  long pid;
  if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0) return fail("no shutdown is pending");
  pid = read(fd, text, sizeof text - 1) > 0 ? strtol(text, NULL, 10) : 0;
  if (pid <= 1 || kill((pid_t)pid, SIGTERM) != 0)
    return fail("the pending shutdown can't be cancelled (try sudo)");
  unlink(kPending);
  printf("The pending shutdown is cancelled.\n");
  return 0;
}

static int usage(int code) {
  fprintf(code == 0 ? stdout : stderr,
          "usage: %s [now | +MINUTES]   ends this instance; its disk is kept\n"
          "       shutdown -c           cancels a pending shutdown\n",
          self);
  return code;
}

int main(int count, char** arguments) {
  long minutes = 0;
  if (count > 0) self = strrchr(arguments[0], '/') ? strrchr(arguments[0], '/') + 1 : arguments[0];
  for (int i = 1; i < count; i++) {
    const char* word = arguments[i];
    char* end;
    if (strcmp(word, "--help") == 0) return usage(0);
    if (strcmp(word, "-c") == 0) return cancel();
    if (strcmp(word, "-r") == 0 || strcmp(word, "--reboot") == 0)
      return fail(
          "an instance can't restart itself: use `autodl stop` and `autodl start`; nothing was "
          "done");
    if (strcmp(word, "now") == 0) continue;
    if (word[0] == '-' && word[1] != 0) {  // -h -P -H -p -f --halt --poweroff …: all the same here
      if (strchr("hPHpfndw-", word[1]) == NULL) return usage(2);
      continue;
    }
    errno = 0;
    minutes = strtol(word, &end, 10);
    // "+5"; a bare 0 is "now" to old hands. A time of day is refused rather than misread.
    if (errno != 0 || end == word || *end != 0 || minutes < 0 || minutes > kMinutesMax ||
        (word[0] != '+' && minutes != 0))
      return usage(2);
  }
  return minutes == 0 ? end_now() : end_later(minutes);
}
