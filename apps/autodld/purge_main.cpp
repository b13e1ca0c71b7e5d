// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The role `purge`: what scripts/uninstall calls once the server is stopped.
#include <fmt/format.h>
#include <sys/mount.h>

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/log.hpp"
#include "node_parts.hpp"
#include "roles.hpp"
#include "runtime/process.hpp"

namespace autodl {

namespace {

Status end_instance(ContainerRuntime& runtime, const InstanceId& id) {
  ADL_TRY_STATUS(runtime.kill_container(id));
  ADL_TRY_STATUS(runtime.remove_container(id));
  ADL_TRY_STATUS(runtime.release_root(id));
  return runtime.destroy(id);
}

Status remove_tree(const std::string& path) {
  std::error_code failed;
  std::filesystem::remove_all(path, failed);
  if (!failed) return {};
  return Error(ErrorKind::kInternal, "os_error",
               fmt::format("remove '{}': {}", path, failed.message()));
}

// Mount points below a folder, the innermost first.
void unmount_below(const std::string& folder) {
  std::vector<std::string> points;
  std::ifstream table("/proc/self/mountinfo");
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);
    std::string skip, point;
    fields >> skip >> skip >> skip >> skip >> point;
    if (point == folder || point.starts_with(folder + "/")) points.push_back(point);
  }
  for (auto point = points.rbegin(); point != points.rend(); ++point)
    if (::umount2(point->c_str(), MNT_DETACH) != 0)
      log_warn("purge", "unmount '{}': {}", *point, std::strerror(errno));
}

void remove_network_and_cgroups(const std::string& prefix) {
  const auto table =
      runtime::run_process({"nft", "delete", "table", "inet", "autodl_" + prefix}, {});
  if (!table.ok()) log_warn("purge", "{}", table.error().message());
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/fs/cgroup", failed)) {
    const auto group = entry.path() / prefix;
    if (!std::filesystem::is_directory(group, failed)) continue;
    for (const auto& child : std::filesystem::directory_iterator(group, failed))
      if (child.is_directory()) ::rmdir(child.path().c_str());
    ::rmdir(group.c_str());
  }
  ::rmdir(("/sys/fs/cgroup/" + prefix).c_str());
}

}  // namespace

Status run_purge(const DaemonConfig& config) {
  if (::geteuid() != 0)
    return Error(ErrorKind::kDenied, "not_root", "purge needs root", "run it with sudo");
  if (std::filesystem::exists(config.node_dir() + "/runtime")) {
    ADL_TRY(settings, runtime_config(config));
    RuncRuntime runtime(settings);
    ADL_TRY_STATUS(runtime.prepare());
    ADL_TRY(found, runtime.scan());
    for (const auto& instance : found) {
      ADL_TRY_STATUS(end_instance(runtime, instance.id));
      fmt::print("ended {}\n", instance.id.str());
    }
    remove_network_and_cgroups(config.name_prefix);
  }
  // What is mounted is never walked into: an image's layers are not this installation's alone.
  unmount_below(config.run_dir);
  unmount_below(config.node_dir());
  ADL_TRY_STATUS(remove_tree(config.run_dir));
  ADL_TRY_STATUS(remove_tree(config.node_dir()));
  ADL_TRY_STATUS(remove_tree(config.control_dir()));
  fmt::print("removed {}, {} and {}\n", config.run_dir, config.node_dir(), config.control_dir());
  return {};
}

}  // namespace autodl
