// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "privileges.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace autodl {

Result<SystemUser> find_user(const std::string& name) {
  const auto* entry = ::getpwnam(name.c_str());
  if (entry == nullptr)
    return Error(ErrorKind::kInvalid, "no_user", fmt::format("there is no system user '{}'", name),
                 fmt::format("make it: useradd --system --user-group --no-create-home "
                             "--shell /usr/sbin/nologin {}",
                             name));
  if (entry->pw_uid == 0)
    return Error(ErrorKind::kInvalid, "no_user", fmt::format("the user '{}' is root", name),
                 "name an unprivileged one under [server] user");
  return SystemUser{entry->pw_uid, entry->pw_gid};
}

Status drop_privileges(const SystemUser& user) {
  for (int capability = 0; capability <= CAP_LAST_CAP; ++capability)
    ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);  // EINVAL past the kernel's last one
  if (::setgroups(0, nullptr) != 0) return errno_error("give up groups", errno);
  if (::setresgid(user.gid, user.gid, user.gid) != 0) return errno_error("become the group", errno);
  if (::setresuid(user.uid, user.uid, user.uid) != 0) return errno_error("become the user", errno);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  if (::syscall(SYS_capset, &header, none) != 0) return errno_error("give up capabilities", errno);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno_error("no new privileges", errno);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  // A change of user clears it.
  if (::prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) return errno_error("watch the supervisor", errno);
  return {};
}

Status ensure_folder(const std::string& path, uid_t owner, gid_t group, mode_t mode) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (failed)
    return Error(ErrorKind::kInvalid, "os_error",
                 fmt::format("make folder '{}': {}", path, failed.message()));
  if (::chown(path.c_str(), owner, group) != 0 || ::chmod(path.c_str(), mode) != 0)
    return errno_error(fmt::format("set owner and mode of '{}'", path), errno);
  return {};
}

}  // namespace autodl
