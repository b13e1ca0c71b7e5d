// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "fileworker/confine.hpp"

#include <grp.h>
#include <linux/capability.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/unique_fd.hpp"

namespace autodl::fileworker {
namespace {

constexpr int kLastCapability = 63;
constexpr std::uint32_t kKept =
    1U << CAP_CHOWN | 1U << CAP_DAC_OVERRIDE | 1U << CAP_FOWNER | 1U << CAP_FSETID;
constexpr rlim_t kDescriptorsMax = 256;  // listing holds two per level
constexpr rlim_t kMemoryMax = 512U << 20;

// What the worker's own code and libc's part of it need, and nothing that makes a process, a socket
// or a mapping that can be executed.
constexpr int kAllowed[] = {
    SCMP_SYS(read),           SCMP_SYS(write),   SCMP_SYS(recvfrom),   SCMP_SYS(sendto),
    SCMP_SYS(poll),           SCMP_SYS(ppoll),   SCMP_SYS(openat),     SCMP_SYS(openat2),
    SCMP_SYS(close),          SCMP_SYS(fstat),   SCMP_SYS(newfstatat), SCMP_SYS(fstatfs),
    SCMP_SYS(getdents64),     SCMP_SYS(lseek),   SCMP_SYS(pread64),    SCMP_SYS(pwrite64),
    SCMP_SYS(ftruncate),      SCMP_SYS(fsync),   SCMP_SYS(fchmod),     SCMP_SYS(fchown),
    SCMP_SYS(utimensat),      SCMP_SYS(mkdirat), SCMP_SYS(renameat),   SCMP_SYS(unlinkat),
    SCMP_SYS(readlinkat),     SCMP_SYS(fcntl),   SCMP_SYS(munmap),     SCMP_SYS(mremap),
    SCMP_SYS(madvise),        SCMP_SYS(brk),     SCMP_SYS(futex),      SCMP_SYS(rt_sigreturn),
    SCMP_SYS(rt_sigprocmask), SCMP_SYS(exit),    SCMP_SYS(exit_group), SCMP_SYS(clock_gettime),
    SCMP_SYS(getpid),         SCMP_SYS(gettid),  SCMP_SYS(tgkill),     SCMP_SYS(restart_syscall),
};

bool same_namespace(int a, int b) {
  struct stat one{};
  struct stat two{};
  return fstat(a, &one) == 0 && fstat(b, &two) == 0 && one.st_ino == two.st_ino &&
         one.st_dev == two.st_dev;
}

Status enter_mount(int mount_fd, const std::string& root) {
  if (setns(mount_fd, CLONE_NEWNS) != 0) return errno_error("enter the mount namespace", errno);
  if (!root.empty() && root != "/" && (chdir(root.c_str()) != 0 || chroot(".") != 0))
    return errno_error("enter '" + root + "'", errno);
  if (chdir("/") != 0) return errno_error("enter the root", errno);
  return {};
}

Status enter_user(int user_fd) {
  if (setns(user_fd, CLONE_NEWUSER) != 0) return errno_error("enter the user namespace", errno);
  // setgroups may be switched off for the namespace; then there are none to drop from outside.
  if (setgroups(0, nullptr) != 0 && errno != EPERM) return errno_error("drop groups", errno);
  if (setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0)
    return errno_error("become uid 0 of the user namespace", errno);
  return {};
}

Status drop_capabilities() {
  for (int capability = 0; capability <= kLastCapability; ++capability) {
    const bool kept = capability < 32 && (kKept >> capability & 1U) != 0;
    if (!kept && prctl(PR_CAPBSET_DROP, capability) != 0 && errno != EINVAL)
      return errno_error("drop a capability", errno);
  }
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  data[0].effective = data[0].permitted = kKept;
  if (syscall(SYS_capset, &header, data) != 0) return errno_error("set capabilities", errno);
  return {};
}

Status limit_system_calls() {
  const std::unique_ptr<void, decltype(&seccomp_release)> filter(
      seccomp_init(SCMP_ACT_KILL_PROCESS), &seccomp_release);
  if (!filter) return Error(ErrorKind::kInternal, "seccomp", "seccomp_init failed");
  for (const int call : kAllowed) {
    if (const int error = seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, call, 0); error != 0)
      return errno_error("allow a system call", -error);
  }
  // Memory: never executable.
  const scmp_arg_cmp not_executable{2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0};
  for (const int call : {SCMP_SYS(mmap), SCMP_SYS(mprotect)}) {
    const int error =
        seccomp_rule_add_array(filter.get(), SCMP_ACT_ALLOW, call, 1, &not_executable);
    if (error != 0) return errno_error("allow a system call", -error);
  }
  if (const int error = seccomp_load(filter.get()); error != 0)
    return errno_error("load the seccomp filter", -error);
  return {};
}

}  // namespace

Status enter_namespaces(int user_fd, int mount_fd, const std::string& root) {
  const UniqueFd owner(ioctl(mount_fd, NS_GET_USERNS));
  // A mount namespace of the instance's own is entered with its user namespace's powers; one that
  // the node made belongs to the host, which only the host's root enters.
  if (owner.valid() && same_namespace(owner.get(), user_fd)) {
    ADL_TRY_STATUS(enter_user(user_fd));
    return enter_mount(mount_fd, root);
  }
  ADL_TRY_STATUS(enter_mount(mount_fd, root));
  return enter_user(user_fd);
}

Status drop_privileges() {
  const rlimit none{0, 0};
  const rlimit descriptors{kDescriptorsMax, kDescriptorsMax};
  const rlimit memory{kMemoryMax, kMemoryMax};
  if (setrlimit(RLIMIT_CORE, &none) != 0 || setrlimit(RLIMIT_NOFILE, &descriptors) != 0 ||
      setrlimit(RLIMIT_AS, &memory) != 0)
    return errno_error("set limits", errno);
  umask(022);
  prctl(PR_SET_DUMPABLE, 0);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno_error("set no_new_privs", errno);
  ADL_TRY_STATUS(drop_capabilities());
  return limit_system_calls();
}

}  // namespace autodl::fileworker
