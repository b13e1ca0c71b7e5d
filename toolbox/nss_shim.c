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
//  * the image's OpenSSL configuration (modules for another libcrypto) isn't read.
//
// Environment variables are answered, not set, so nothing of this is inherited by the user's
// processes.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <locale.h>
#include <pwd.h>
#include <shadow.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
