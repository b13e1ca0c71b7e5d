// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/idmap.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/crash_point.hpp"

namespace autodl::runtime {
namespace {

// A process that holds a user namespace and nothing else; killed when this goes.
class NamespaceHolder {
 public:
  NamespaceHolder()
      : pid_(static_cast<pid_t>(::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0))) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  NamespaceHolder(const NamespaceHolder&) = delete;
  NamespaceHolder& operator=(const NamespaceHolder&) = delete;
  ~NamespaceHolder() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

}  // namespace

Status write_id_maps(int pid, std::uint32_t first_uid) {
  const auto map = fmt::format("0 {} 65536", first_uid);
  for (const char* name : {"uid_map", "gid_map"}) {
    const auto path = fmt::format("/proc/{}/{}", pid, name);
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd.valid() || ::write(fd.get(), map.data(), map.size()) < 0)
      return errno_error(fmt::format("write '{}' to '{}'", map, path), errno);
  }
  return {};
}

Result<UniqueFd> make_user_namespace(std::uint32_t first_uid) {
  NamespaceHolder holder;
  if (holder.pid() < 0) return errno_error("make a user namespace", errno);
  ADL_TRY_STATUS(write_id_maps(holder.pid(), first_uid));
  UniqueFd fd(::open(fmt::format("/proc/{}/ns/user", holder.pid()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return errno_error("open a user namespace", errno);
  return fd;
}

Status mount_idmapped(const std::string& source, const std::string& target, int user_namespace) {
  UniqueFd tree(static_cast<int>(
      ::syscall(SYS_open_tree, AT_FDCWD, source.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  if (!tree.valid()) return errno_error(fmt::format("open layer '{}'", source), errno);
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  attributes.userns_fd = static_cast<__u64>(user_namespace);
  if (::syscall(SYS_mount_setattr, tree.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) !=
      0)
    return errno_error(fmt::format("map the ids of layer '{}'", source), errno);
  crash_point("runtime.mount_layer.before");
  if (::syscall(SYS_move_mount, tree.get(), "", AT_FDCWD, target.c_str(),
                MOVE_MOUNT_F_EMPTY_PATH) != 0)
    return errno_error(fmt::format("mount layer '{}' at '{}'", source, target), errno);
  crash_point("runtime.mount_layer.after");
  return {};
}

}  // namespace autodl::runtime
