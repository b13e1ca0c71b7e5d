// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/root_fs.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/mount.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/idmap.hpp"
#include "runtime/mounts.hpp"
#include "runtime/overlay.hpp"

namespace autodl::runtime {
namespace {

constexpr int kNamespacesDeadlineMs = 10'000;

// In a fresh user and mount namespace, as its root: turns the instance's root into "/" and puts
// the data folder into place. Every tenant path is resolved after the pivot, so inside the root.
// Only system calls: this runs after a fork. 0, or the errno.
int enter_root(const char* root, const char* data) {
  const auto pivot = [] { return static_cast<int>(::syscall(SYS_pivot_root, ".", ".")); };
  if (::syscall(SYS_setresgid, 0, 0, 0) != 0 || ::syscall(SYS_setresuid, 0, 0, 0) != 0)
    return errno;
  const auto tree = static_cast<int>(
      ::syscall(SYS_open_tree, AT_FDCWD, data, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  if (tree < 0) return errno;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return errno;
  if (::mount(root, root, nullptr, MS_BIND | MS_REC, nullptr) != 0) return errno;
  if (::chdir(root) != 0 || pivot() != 0 || ::umount2(".", MNT_DETACH) != 0 || ::chdir("/") != 0)
    return errno;
  ::mkdir("/root", 0700);
  ::mkdir("/root/autodl-tmp", 0755);
  if (::syscall(SYS_move_mount, tree, "", AT_FDCWD, "/root/autodl-tmp", MOVE_MOUNT_F_EMPTY_PATH) !=
      0)
    return errno;
  return 0;
}

[[noreturn]] void hold_namespaces(const char* root, const char* data, int go, int done) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  char byte = 0;
  if (::read(go, &byte, 1) != 1) ::_exit(1);  // the maps are written
  const int error = enter_root(root, data);
  if (::write(done, &error, sizeof error) != sizeof error) ::_exit(1);
  for (;;) ::pause();
}

// Waits for the child's word: 0, its errno, or ETIMEDOUT.
int await_word(int done) {
  pollfd item{done, POLLIN, 0};
  int error = ETIMEDOUT;
  if (::poll(&item, 1, kNamespacesDeadlineMs) != 1) return ETIMEDOUT;
  return ::read(done, &error, sizeof error) == sizeof error ? error : ECHILD;
}

class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

 private:
  pid_t pid_;
};

}  // namespace

bool RootFs::mounted(const InstanceId& id) const {
  return is_overlay_mount(path(id));
}

Status RootFs::ensure(const RootSpec& spec) {
  ADL_TRY(image, images_.pinned(spec.image_digest));
  ADL_TRY(record, disks_.record(spec.id));
  if (record.slot != spec.slot) {
    return Error(ErrorKind::kConflict, "disk_conflict",
                 fmt::format("disk of {} belongs to slot {}, not {}", spec.id.str(), record.slot,
                             spec.slot));
  }
  ADL_TRY_STATUS(disks_.set_image(spec.id, spec.image_digest));
  if (mounted(spec.id)) return unmount_layers(disks_.instance_folder(spec.id));
  ADL_TRY_STATUS(disks_.ensure(DiskSpec{spec.id, record.size_bytes, record.slot}));
  ADL_TRY(ids, make_user_namespace(disks_.first_uid(spec.slot)));
  return mount_layers(disks_.instance_folder(spec.id), image.layers, ids.get());
}

Status RootFs::release(const InstanceId& id) {
  ADL_TRY_STATUS(unmount_layers(disks_.instance_folder(id)));
  ADL_TRY_STATUS(unmount_all(path(id)));
  return disks_.unmount(id);
}

Result<ContainerRuntime::Namespaces> RootFs::make_namespaces(const InstanceId& id,
                                                             std::uint32_t slot) {
  if (!mounted(id)) {
    return Error(ErrorKind::kConflict, "no_root",
                 fmt::format("the root of instance {} is not mounted", id.str()));
  }
  const auto root = path(id);
  const auto data = disks_.mount_point(id) + "/data";
  int go[2];
  int done[2];
  if (::pipe2(go, O_CLOEXEC) != 0) return errno_error("make a pipe", errno);
  UniqueFd go_read(go[0]), go_write(go[1]);
  if (::pipe2(done, O_CLOEXEC) != 0) return errno_error("make a pipe", errno);
  UniqueFd done_read(done[0]), done_write(done[1]);
  const auto pid =
      static_cast<pid_t>(::syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWNS | SIGCHLD, 0, 0, 0, 0));
  if (pid < 0) return errno_error("make namespaces for a file worker", errno);
  if (pid == 0) hold_namespaces(root.c_str(), data.c_str(), go_read.get(), done_write.get());
  const Child child(pid);
  done_write.reset();
  ADL_TRY_STATUS(write_id_maps(pid, disks_.first_uid(slot)));
  if (::write(go_write.get(), "g", 1) != 1) return errno_error("start a namespace holder", errno);
  if (const int error = await_word(done_read.get()); error != 0)
    return errno_error(fmt::format("enter the root of instance {}", id.str()), error);
  ContainerRuntime::Namespaces spaces;
  const auto open_ns = [pid](const char* name) {
    return UniqueFd(::open(fmt::format("/proc/{}/ns/{}", pid, name).c_str(), O_RDONLY | O_CLOEXEC));
  };
  spaces.user = open_ns("user");
  spaces.mount = open_ns("mnt");
  spaces.root = "/";
  if (!spaces.user.valid() || !spaces.mount.valid()) return errno_error("open namespaces", errno);
  return spaces;
}

}  // namespace autodl::runtime
