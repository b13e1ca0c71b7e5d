// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
//
// libautodl_shim.so: first among the libraries of every toolbox program that isn't static (sshd and
// its two helpers, sftp-server, rsync, scp, tmux). It makes these programs independent of what an
// image holds or lacks:
//
//  * accounts come from /etc/passwd, /etc/shadow and /etc/group, read here: the image's
//  nsswitch.conf and NSS modules,
//    made for another libc, are never loaded. `root` and sshd's `sshd` exist in any case, so an
//    image without passwd works, and nothing is written into its /etc;
//  * a locked password ("!…") reads as "*": sshd without PAM refuses such accounts even by key;
//  * sshd sees the session wrapper as everybody's login shell (the wrapper then runs the user's
//  own);
//    other programs see the user's shell, or one that exists;
//  * tmux finds the toolbox's UTF-8 locale, and ncurses the toolbox's terminal descriptions after
//  the image's own;
//  * the image's OpenSSL configuration (modules for another libcrypto) isn't read;
//  * sshd knows the real client, though the node made the connection.
//
// Environment variables are answered, not set, so nothing of this is inherited by the user's
// processes.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <locale.h>
#include <pwd.h>
#include <shadow.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TOOLBOX "/opt/autodl"

extern char** environ;

static struct passwd made_up_root = {"root", "*", 0, 0, "root", "/root", ""};
static struct passwd made_up_sshd = {"sshd",      "*",         65533, 65533, "privilege separation",
                                     "/run/sshd", "/bin/false"};
static struct spwd made_up_shadow = {"root", "*", 0, 0, 99999, 7, -1, -1, -1};

static int is_program(const char* prefix) {
  return strncmp(program_invocation_short_name, prefix, strlen(prefix)) == 0;
}

static char* shell_of(const struct passwd* user) {
  static char* candidates[] = {"/bin/bash", "/bin/sh", TOOLBOX "/bin/sh"};
  if (is_program("sshd") && user->pw_uid != made_up_sshd.pw_uid) return TOOLBOX "/bin/autodl-shell";
  if (user->pw_shell != NULL && user->pw_shell[0] == '/' && access(user->pw_shell, X_OK) == 0)
    return user->pw_shell;
  for (size_t i = 0; i < sizeof candidates / sizeof candidates[0]; i++)
    if (access(candidates[i], X_OK) == 0) return candidates[i];
  return candidates[2];
}

// The entry that `name` (or, where it is NULL, `uid`) has in /etc/passwd, else the made-up one,
// else NULL.
static struct passwd* find_user(const char* name, uid_t uid) {
  struct passwd* user = NULL;
  FILE* file = fopen("/etc/passwd", "re");
  if (file != NULL) {
    while ((user = fgetpwent(file)) != NULL)
      if (name != NULL ? strcmp(user->pw_name, name) == 0 : user->pw_uid == uid) break;
    fclose(file);
  }
  if (user == NULL && (name != NULL ? strcmp(name, "root") == 0 : uid == 0)) user = &made_up_root;
  if (user == NULL && (name != NULL ? strcmp(name, "sshd") == 0 : uid == made_up_sshd.pw_uid))
    user = &made_up_sshd;
  if (user != NULL) user->pw_shell = shell_of(user);
  if (user == NULL) errno = 0;
  return user;
}

struct passwd* getpwnam(const char* name) {
  return find_user(name, 0);
}
struct passwd* getpwuid(uid_t uid) {
  return find_user(NULL, uid);
}

struct spwd* getspnam(const char* name) {
  struct spwd* entry = NULL;
  FILE* file = fopen("/etc/shadow", "re");
  if (file != NULL) {
    while ((entry = fgetspent(file)) != NULL)
      if (strcmp(entry->sp_namp, name) == 0) break;
    fclose(file);
  }
  if (entry == NULL && strcmp(name, "root") == 0) entry = &made_up_shadow;
  if (entry != NULL && (entry->sp_pwdp == NULL || entry->sp_pwdp[0] == '!')) entry->sp_pwdp = "*";
  return entry;
}

static struct group* find_group(const char* name, gid_t gid) {
  struct group* group = NULL;
  FILE* file = fopen("/etc/group", "re");
  if (file == NULL) return NULL;
  while ((group = fgetgrent(file)) != NULL)
    if (name != NULL ? strcmp(group->gr_name, name) == 0 : group->gr_gid == gid) break;
  fclose(file);
  return group;
}

struct group* getgrnam(const char* name) {
  return find_group(name, 0);
}
struct group* getgrgid(gid_t gid) {
  return find_group(NULL, gid);
}

int getgrouplist(const char* user, gid_t gid, gid_t* groups, int* count) {
  int room = *count, found = 0;
  FILE* file = fopen("/etc/group", "re");
  if (room > 0) groups[0] = gid;
  found = 1;
  for (struct group* group; file != NULL && (group = fgetgrent(file)) != NULL;) {
    if (group->gr_gid == gid) continue;
    for (char** member = group->gr_mem; *member != NULL; member++) {
      if (strcmp(*member, user) != 0) continue;
      if (found < room) groups[found] = group->gr_gid;
      found++;
      break;
    }
  }
  if (file != NULL) fclose(file);
  *count = found;
  return found > room ? -1 : found;
}

int initgroups(const char* user, gid_t gid) {
  gid_t groups[256];  // more memberships than that are cut off
  int count = 256;
  if (getgrouplist(user, gid, groups, &count) < 0) count = 256;
  return setgroups((size_t)count, groups);
}

static char* lookup(const char* name) {
  size_t length = strlen(name);
  for (char** entry = environ; entry != NULL && *entry != NULL; entry++)
    if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
  if (strcmp(name, "TERMINFO_DIRS") == 0)
    return "/etc/terminfo:/lib/terminfo:/usr/share/terminfo:" TOOLBOX "/share/terminfo";
  return NULL;
}

char* getenv(const char* name) {
  return strcmp(name, "OPENSSL_CONF") == 0 ? "/dev/null" : lookup(name);
}
char* secure_getenv(const char* name) {
  return getenv(name);
}

// tmux insists on a UTF-8 locale, which a small image lacks; LOCPATH is set for the length of the
// call only.
char* setlocale(int category, const char* locale) {
  char* (*real)(int, const char*) = (char* (*)(int, const char*))dlsym(RTLD_NEXT, "setlocale");
  char* result = real(category, locale);
  if (result == NULL && is_program("tmux") && lookup("LOCPATH") == NULL) {
    setenv("LOCPATH", TOOLBOX "/share/locale", 1);
    result = real(category, "C.UTF-8");
    unsetenv("LOCPATH");
  }
  return result;
}

// sshd would take the node, which hands every connection in, for the client. init knows the real
// one and says AUTODL_SSH_PEER="NODE PORT CLIENT PORT ENDPOINT PORT"; for the one connection whose
// other end is NODE PORT, sshd's questions are answered with CLIENT and ENDPOINT. So from= lists,
// Match Address, logs, SSH_CLIENT and SSH_CONNECTION are right.
struct ssh_peer {
    char node[64], node_port[8], address[2][64], port[2][8];  // 0: client, 1: endpoint
};

static int read_ssh_peer(struct ssh_peer *peer) {
    const char *text = is_program("sshd") ? lookup("AUTODL_SSH_PEER") : NULL;
    return text != NULL &&
           sscanf(text, "%63s %7s %63s %7s %63s %7s", peer->node, peer->node_port, peer->address[0],
                  peer->port[0], peer->address[1], peer->port[1]) == 6;
}

// Whether the socket's other end is the node's connection. Uses the real getpeername.
static int is_node_connection(int fd, const struct ssh_peer *peer) {
    int (*real)(int, struct sockaddr *, socklen_t *) =
        (int (*)(int, struct sockaddr *, socklen_t *))dlsym(RTLD_NEXT, "getpeername");
    struct sockaddr_in other;
    socklen_t length = sizeof other;
    char text[INET_ADDRSTRLEN];
    return real(fd, (struct sockaddr *)&other, &length) == 0 && other.sin_family == AF_INET &&
           inet_ntop(AF_INET, &other.sin_addr, text, sizeof text) != NULL &&
           strcmp(text, peer->node) == 0 && ntohs(other.sin_port) == atoi(peer->node_port);
}

static int answer_address(const char *text, const char *port, struct sockaddr *address,
                          socklen_t *length) {
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)atoi(port))};
    const void *answer = NULL;
    socklen_t size = 0;
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
        answer = &v4;
        size = sizeof v4;
    } else if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1) {
        answer = &v6;
        size = sizeof v6;
    } else {
        return -1;
    }
    memcpy(address, answer, size < *length ? size : *length);
    *length = size;
    return 0;
}

static int ask_name(const char *function, int side, int fd, struct sockaddr *address,
                    socklen_t *length) {
    int (*real)(int, struct sockaddr *, socklen_t *) =
        (int (*)(int, struct sockaddr *, socklen_t *))dlsym(RTLD_NEXT, function);
    struct ssh_peer peer;
    if (read_ssh_peer(&peer) && is_node_connection(fd, &peer) &&
        answer_address(peer.address[side], peer.port[side], address, length) == 0)
        return 0;
    return real(fd, address, length);
}

int getpeername(int fd, struct sockaddr *address, socklen_t *length) {
    return ask_name("getpeername", 0, fd, address, length);
}

int getsockname(int fd, struct sockaddr *address, socklen_t *length) {
    return ask_name("getsockname", 1, fd, address, length);
}
