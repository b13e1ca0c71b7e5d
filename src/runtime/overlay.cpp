// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/overlay.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "base/crash_point.hpp"
#include "runtime/host_files.hpp"
#include "runtime/idmap.hpp"
#include "runtime/mounts.hpp"

namespace autodl::runtime {
namespace {

// Mounts the overlay at ../r from inside FOLDER/l. The working folder belongs to the process, so
// a thread that has left that sharing does it. 0, or the errno.
int mount_from(const std::string& layer_folder, const std::string& options, unsigned long flags) {
  int error = 0;
  std::thread([&] {
    if (::unshare(CLONE_FS) != 0 || ::chdir(layer_folder.c_str()) != 0 ||
        ::mount("overlay", "../r", "overlay", flags, options.c_str()) != 0)
      error = errno;
  }).join();
  return error;
}

Status mount_one_layer(const std::string& source, const std::string& target, int user_namespace) {
  ADL_TRY_STATUS(make_folder(target, 0700));
  if (user_namespace >= 0) return mount_idmapped(source, target, user_namespace);
  if (::mount(source.c_str(), target.c_str(), nullptr, MS_BIND, nullptr) != 0)
    return errno_error(fmt::format("mount layer '{}'", source), errno);
  return {};
}

}  // namespace

std::string overlay_options(std::size_t layers, bool writable) {
  std::string options = "lowerdir=";
  for (std::size_t layer = 0; layer < layers; ++layer)
    options += fmt::format("{}{}", layer == 0 ? "" : ":", layer);
  // index and nfs_export give files handles that survive: CRIU needs them to dump inotify watches.
  if (writable) options += ",upperdir=../d/upper,workdir=../d/work,index=on,nfs_export=on";
  return options;
}

Status mount_layers(const std::string& folder, const std::vector<std::string>& layers,
                    int user_namespace) {
  const auto layer_folder = folder + "/l";
  ADL_TRY_STATUS(unmount_layers(folder));
  ADL_TRY_STATUS(make_folder(layer_folder, 0700));
  ADL_TRY_STATUS(make_folder(folder + "/r", 0755));
  if (::mount("layers", layer_folder.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              "mode=0700,size=1m") != 0)
    return errno_error(fmt::format("mount a folder for layers at '{}'", layer_folder), errno);
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    auto mounted =
        mount_one_layer(layers[layer], fmt::format("{}/{}", layer_folder, layer), user_namespace);
    if (mounted.ok()) continue;
    static_cast<void>(unmount_layers(folder));
    return mounted.error();
  }
  const bool writable = user_namespace >= 0;
  crash_point("runtime.mount_root.before");
  const int error = mount_from(layer_folder, overlay_options(layers.size(), writable),
                               MS_NODEV | (writable ? 0UL : MS_RDONLY | MS_NOSUID));
  crash_point("runtime.mount_root.after");
  ADL_TRY_STATUS(unmount_layers(folder));
  if (error == 0) return {};
  const auto what = fmt::format("mount the root of '{}' ({} layers)", folder, layers.size());
  if (error == EBUSY || error == ESTALE) {
    return Error(ErrorKind::kUnavailable, error == EBUSY ? "root_busy" : "root_stale",
                 fmt::format("{}: {}", what,
                             error == EBUSY ? "its upper directory is still in use"
                                            : "its upper directory belongs to other layers"));
  }
  return errno_error(what, error);
}

// The layers hang below one tmpfs: each unmount waits for the kernel's readers, so one for all.
Status unmount_layers(const std::string& folder) {
  const auto layer_folder = folder + "/l";
  ADL_TRY_STATUS(unmount_all(layer_folder, true));
  ::rmdir(layer_folder.c_str());
  return {};
}

}  // namespace autodl::runtime
