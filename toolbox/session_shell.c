// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
//
// autodl-shell: what sshd runs as login shell. sshd drops its parent's environment and /etc/profile
// resets PATH; this program gives a session the environment that init keeps (/run/autodl/env:
// KEY=VALUE entries, each ended by a NUL byte) and then becomes the user's own shell. Static and
// free of libc's account look-ups, so it works in any image.
//
//   -autodl-shell              a login session: the user's shell, interactive on a terminal
//   autodl-shell -c COMMAND    one command by the user's shell
//   autodl-shell --export      prints the environment as sh commands; etc/session.sh applies it
//   after /etc/profile
//
// init tells the real client by sshd's SetEnv: AUTODL_SSH_CONNECTION="CLIENT PORT SERVER PORT"
// becomes SSH_CONNECTION and SSH_CLIENT (sshd itself knows only the node's address).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOOLBOX "/opt/autodl"
#define SESSION_SCRIPT TOOLBOX "/etc/session.sh"
#define SFTP_SERVER TOOLBOX "/libexec/sftp-server"

enum { kEnvironmentBytesMax = 4 << 20, kPasswdBytesMax = 1 << 20 };

extern char** environ;

// The whole file with a NUL added, or NULL where it can't be read or is longer than `limit`.
static char* read_file(const char* path, size_t limit, size_t* length) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info;
  char* data = NULL;
  *length = 0;
  if (fd < 0) return NULL;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && (size_t)info.st_size <= limit)
    data = malloc((size_t)info.st_size + 1);
  while (data != NULL && *length < (size_t)info.st_size) {
    ssize_t got = read(fd, data + *length, (size_t)info.st_size - *length);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    *length += (size_t)got;
  }
  if (data != NULL) data[*length] = 0;
  close(fd);
  return data;
}

static int is_identifier(const char* key, size_t length) {
  if (length == 0 || (key[0] >= '0' && key[0] <= '9')) return 0;
  for (size_t i = 0; i < length; i++) {
    char c = key[i];
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'))
      return 0;
  }
  return 1;
}

// What belongs to this one login stays: the client, the terminal, and for anyone but root who they
// are.
static int belongs_to_session(const char* entry) {
  static const char* const always[] = {
      "SSH_", "AUTODL_SSH_CONNECTION=", "PWD=", "OLDPWD=", "SHLVL=", "_="};
  static const char* const not_root[] = {"HOME=", "USER=", "LOGNAME=", "SHELL="};
  for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
    if (strncmp(entry, always[i], strlen(always[i])) == 0) return 1;
  if (strncmp(entry, "TERM=", 5) == 0) return getenv("SSH_TTY") != NULL;
  for (size_t i = 0; getuid() != 0 && i < sizeof not_root / sizeof not_root[0]; i++)
    if (strncmp(entry, not_root[i], strlen(not_root[i])) == 0) return 1;
  return 0;
}

static void print_export(const char* key, size_t key_length, const char* value) {
  if (!is_identifier(key, key_length))
    return;  // a shell can't hold it; it is in the environment already
  printf("export %.*s='", (int)key_length, key);
  for (; *value != 0; value++) {
    if (*value == '\'')
      fputs("'\\''", stdout);
    else
      putchar(*value);
  }
  fputs("'\n", stdout);
}

static void apply_environment(int as_text) {
  size_t length;
  const char* data = read_file("/run/autodl/env", kEnvironmentBytesMax, &length);
  for (const char* entry = data; entry != NULL && entry < data + length;
       entry += strlen(entry) + 1) {
    const char* equals = strchr(entry, '=');
    char* key;
    if (equals == NULL || equals == entry || belongs_to_session(entry)) continue;
    if (as_text) {
      print_export(entry, (size_t)(equals - entry), equals + 1);
      continue;
    }
    key = strndup(entry, (size_t)(equals - entry));
    if (key != NULL) setenv(key, equals + 1, 1);
    free(key);
  }
}

static void tell_real_client(void) {
  const char* connection = getenv("AUTODL_SSH_CONNECTION");
  char client[128], client_port[16], server[128], server_port[16], text[192];
  if (connection != NULL &&
      sscanf(connection, "%127s %15s %127s %15s", client, client_port, server, server_port) == 4) {
    setenv("SSH_CONNECTION", connection, 1);
    snprintf(text, sizeof text, "%s %s %s", client, client_port, server_port);
    setenv("SSH_CLIENT", text, 1);
  }
  unsetenv("AUTODL_SSH_CONNECTION");
  unsetenv("MAIL");  // sshd's guess; no such mailbox
}

// The seventh field of our line in /etc/passwd, or NULL. Fields: name, password, uid, gid, comment,
// home, shell.
static char* shell_in_passwd(void) {
  size_t length;
  char *data = read_file("/etc/passwd", kPasswdBytesMax, &length), *rest = data, *line;
  while (rest != NULL && (line = strsep(&rest, "\n")) != NULL) {
    char *fields[7], *end;
    int count = 0;
    while (count < 7 && (fields[count] = strsep(&line, ":")) != NULL) count++;
    if (count < 7 || fields[2][0] < '0' || fields[2][0] > '9') continue;
    if (strtoul(fields[2], &end, 10) == getuid() && *end == 0)
      return fields[6][0] == '/' ? fields[6] : NULL;
  }
  return NULL;
}

static const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

// Becomes `shell`; returns only where that can't be executed. SHELL names it, unless the
// environment file has one.
static void become(const char* shell, char** arguments, int login) {
  static int shell_is_given = -1;
  const char* name = base_name(shell);
  int is_bash = strcmp(name, "bash") == 0;
  int is_sh = strcmp(name, "sh") == 0 || strcmp(name, "dash") == 0 || strcmp(name, "ash") == 0;
  if (shell_is_given < 0) {
    const char* given = getenv("SHELL");  // sshd's own word is this program
    shell_is_given = given != NULL && strcmp(base_name(given), "autodl-shell") != 0;
  }
  if (!shell_is_given) setenv("SHELL", shell, 1);
  if (!login) {
    arguments[0] = (char*)name;
    execv(shell, arguments);
  } else if ((is_bash || is_sh) && !isatty(STDIN_FILENO)) {
    // Commands come on standard input: profile first, then a plain shell that reads them.
    execl(shell, name, "-c", ". " SESSION_SCRIPT "; exec \"$0\"", shell, (char*)NULL);
  } else if (is_bash) {
    execl(shell, name, "--rcfile", SESSION_SCRIPT, "-i", (char*)NULL);
  } else if (is_sh) {
    setenv("ENV", SESSION_SCRIPT, 1);
    execl(shell, name, "-i", (char*)NULL);
  } else {
    char login_name[256];
    snprintf(login_name, sizeof login_name, "-%s", name);
    execl(shell, login_name, (char*)NULL);
  }
}

int main(int count, char** arguments) {
  static const char* const fallbacks[] = {"/bin/bash", "/bin/sh", TOOLBOX "/bin/sh"};
  if (count == 2 && strcmp(arguments[1], "--export") == 0) {
    apply_environment(1);
    return fflush(stdout) == 0 ? 0 : 1;
  }
  apply_environment(0);
  tell_real_client();
  // Straight to the server: output of the user's start-up files would break the protocol, and
  // libraries the user preloads are made for the image's libc.
  if (count == 3 && strcmp(arguments[1], "-c") == 0 && strcmp(arguments[2], SFTP_SERVER) == 0) {
    unsetenv("LD_PRELOAD");
    unsetenv("LD_LIBRARY_PATH");
    unsetenv("LD_AUDIT");
    execl(SFTP_SERVER, "sftp-server", (char*)NULL);
  }
  const char* own = shell_in_passwd();
  if (own != NULL) become(own, arguments, count == 1);
  for (size_t i = 0; i < sizeof fallbacks / sizeof fallbacks[0]; i++)
    become(fallbacks[i], arguments, count == 1);
  fprintf(stderr,
          "autodl-shell: no shell can be started (%s): tried %s, /bin/bash, /bin/sh and the "
          "toolbox's\n",
          strerror(errno), own == NULL ? "none from /etc/passwd" : own);
  return 127;
}
