// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/runc_runtime.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <set>

#include "base/crash_point.hpp"
#include "base/log.hpp"
#include "runtime/host_files.hpp"
#include "runtime/mounts.hpp"
#include "runtime/overlay.hpp"

namespace autodl {

using namespace runtime;  // NOLINT: the parts of this module

namespace {

constexpr std::uint64_t kOpenFilesMax = 1'048'576;
constexpr std::size_t kExitRecordMax = 4096;
constexpr std::size_t kKeySize = 32;

Error conflict(std::string code, std::string message) {
  return Error(ErrorKind::kConflict, std::move(code), std::move(message));
}

std::uint64_t open_files_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  return std::min<std::uint64_t>(limit.rlim_max, kOpenFilesMax);
}

bool is_plain_path(const std::string& path) {
  return path.starts_with("/") && path.find("/../") == std::string::npos &&
         !path.ends_with("/..") && path.find('\0') == std::string::npos;
}

// One card's file or device, checked: what is not what it is said to be is not mounted.
Status add_device(const DeviceMount& item, BundleSpec& bundle) {
  struct stat info{};
  struct statvfs space{};
  if (!is_plain_path(item.host_path) || !is_plain_path(item.container_path) ||
      ::stat(item.host_path.c_str(), &info) != 0 ||
      ::statvfs(item.host_path.c_str(), &space) != 0) {
    return Error(ErrorKind::kUnavailable, "device_missing",
                 fmt::format("mount '{}' at '{}': {}", item.host_path, item.container_path,
                             errno_error("look at it", errno).message()));
  }
  if (item.is_device != (S_ISCHR(info.st_mode) != 0)) {
    return Error(
        ErrorKind::kInternal, "not_a_device",
        fmt::format("'{}' is {}a character device", item.host_path, item.is_device ? "not " : ""));
  }
  if (item.is_device)
    bundle.devices.push_back({'c', static_cast<std::int64_t>(major(info.st_rdev)),
                              static_cast<std::int64_t>(minor(info.st_rdev))});
  bundle.mounts.push_back({item.host_path, item.container_path, !item.is_device && item.read_only,
                           (space.f_flag & ST_NOEXEC) != 0, item.is_device});
  return {};
}

}  // namespace

RuncRuntime::RuncRuntime(RuntimeConfig config)
    : config_(std::move(config)),
      cgroups_(config_.cgroup_root, config_.name_prefix),
      disks_(config_),
      images_(config_),
      roots_(disks_, images_),
      logs_(config_, disks_),
      network_(config_),
      containers_(config_, cgroups_) {
  if (config_.seccomp_path.empty())
    config_.seccomp_path = config_.toolbox_dir + "/etc/seccomp.oci.json";
}

Status RuncRuntime::check_machine() const {
  if (::geteuid() != 0) {
    return Error(ErrorKind::kDenied, "not_root",
                 "the node must run as root: it mounts and starts containers");
  }
  for (const char* tool : {"runc", "conmon", "podman", "mkfs.ext4", "ip", "nft"}) {
    bool found = false;
    for (const char* folder :
         {"/usr/local/sbin/", "/usr/local/bin/", "/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"})
      found = found || ::access((std::string(folder) + tool).c_str(), X_OK) == 0;
    if (!found) {
      return Error(ErrorKind::kUnsupported, "tool_missing",
                   fmt::format("program '{}' is missing", tool), "run scripts/setup");
    }
  }
  return {};
}

Status RuncRuntime::prepare() {
  ADL_TRY_STATUS(check_machine());
  ADL_TRY(text, read_small_file(config_.seccomp_path));
  ADL_TRY(section, parse_seccomp(text));
  seccomp_ = std::move(section);
  ADL_TRY_STATUS(make_folder(config_.state_dir, 0700));
  if (!path_exists(config_.run_dir)) ADL_TRY_STATUS(make_folder(config_.run_dir, 0755));
  ADL_TRY_STATUS(disks_.prepare());
  ADL_TRY_STATUS(images_.prepare());
  ADL_TRY_STATUS(containers_.prepare());
  ADL_TRY_STATUS(network_.prepare());
  ADL_TRY_STATUS(logs_.prepare());
  return clean_up();
}

// What a death in the middle of a call left. An error in one instance's leftovers is told and does
// not keep the node from starting: the next call for that instance meets it again.
Status RuncRuntime::clean_up() {
  const auto told = [](const InstanceId& id, const Status& status) {
    if (!status.ok()) log_warn("runtime", "clean up {}: {}", id.str(), status.error().message());
  };
  std::set<std::uint32_t> slots;
  for (const auto& id : containers_.list()) {
    const auto record = containers_.created(id);
    if (!record) {
      told(id, containers_.remove(id));
      continue;
    }
    slots.insert(record->slot);
    logs_.keep(id, record->run);
  }
  for (const auto& name : list_names(config_.run_dir + "/m"))
    told(InstanceId(name), unmount_layers(config_.run_dir + "/m/" + name));
  for (const auto& name : list_names(config_.state_dir + "/logs"))
    if (const InstanceId id(name); !name.starts_with("blank-") && !containers_.created(id))
      told(id, logs_.archive(id));
  const auto prefix = config_.name_prefix + "-";
  for (const auto& name : list_names("/sys/class/net")) {
    std::uint32_t slot = 0;
    const auto* end = name.data() + name.size();
    if (!name.starts_with(prefix)) continue;
    const auto parsed = std::from_chars(name.data() + prefix.size(), end, slot);
    if (parsed.ec == std::errc{} && parsed.ptr == end && !slots.contains(slot))
      told(InstanceId(name), network_.detach(slot));
  }
  return {};
}

Result<std::vector<FoundInstance>> RuncRuntime::scan() {
  std::set<InstanceId> ids;
  for (const auto& id : disks_.list()) ids.insert(id);
  for (const auto& id : containers_.list()) ids.insert(id);
  std::vector<FoundInstance> found;
  for (const auto& id : ids) {
    FoundInstance item;
    item.id = id;
    item.disk = disks_.record(id).ok();
    item.mounted = roots_.mounted(id);
    ADL_TRY(state, status(id));
    item.container = std::move(state);
    found.push_back(std::move(item));
  }
  return found;
}

Result<ImageInfo> RuncRuntime::ensure_image(const std::string& reference,
                                            const PullProgress& progress) {
  ADL_TRY(image, images_.ensure(reference, progress));
  return image.info;
}

Result<std::vector<ImageInfo>> RuncRuntime::list_images() {
  return images_.list();
}

Status RuncRuntime::ensure_disk(const DiskSpec& spec) {
  ADL_TRY_STATUS(network_.check_slot(spec.slot));
  return disks_.ensure(spec);
}

Status RuncRuntime::ensure_root(const RootSpec& spec) {
  return roots_.ensure(spec);
}

Status RuncRuntime::check_spec(const ContainerSpec& spec) const {
  const auto refuse = [&](std::string what) {
    return Error(ErrorKind::kInvalid, "bad_container",
                 fmt::format("container of instance {}: {}", spec.id.str(), what));
  };
  if (!is_hostname(spec.hostname))
    return refuse(fmt::format("host name '{}' is not one", spec.hostname));
  if (!is_cpuset(spec.cpuset)) return refuse(fmt::format("CPU set '{}' is not one", spec.cpuset));
  if (spec.run_key.size() != kKeySize) return refuse("its key is not 32 bytes");
  if (spec.run.empty()) return refuse("it has no run");
  ADL_TRY(disk, disks_.record(spec.id));
  if (disk.slot != spec.slot)
    return refuse(fmt::format("slot {} is not its disk's, {}", spec.slot, disk.slot));
  if (!roots_.mounted(spec.id))
    return conflict("no_root",
                    fmt::format("the root of instance {} is not mounted", spec.id.str()));
  return {};
}

// boot/ is made new for each run, so nothing that a tenant left there is ever followed.
Status RuncRuntime::write_instance_files(const ContainerSpec& spec) const {
  const auto disk = disks_.mount_point(spec.id);
  const auto owner = std::int64_t{disks_.first_uid(spec.slot)};
  ADL_TRY_STATUS(remove_hostile_tree(disk + "/boot"));
  ADL_TRY_STATUS(make_folder(disk + "/boot", 0700, owner));
  ADL_TRY_STATUS(write_atomically(disk + "/boot/key", spec.run_key, 0400, owner));
  ADL_TRY_STATUS(write_atomically(disk + "/etc/hostname", spec.hostname + "\n", 0644, owner));
  ADL_TRY_STATUS(write_atomically(
      disk + "/etc/hosts", hosts_file(spec.hostname, network_.address_of(spec.slot)), 0644, owner));
  return write_atomically(disk + "/etc/resolv.conf", resolv_file(network_.resolvers()), 0644,
                          owner);
}

Result<BundleSpec> RuncRuntime::bundle_for(const ContainerSpec& spec) const {
  const auto disk = disks_.mount_point(spec.id);
  BundleSpec bundle;
  bundle.instance = spec.id.str();
  bundle.run = spec.run.str();
  bundle.root_path = roots_.path(spec.id);
  bundle.hostname = spec.hostname;
  bundle.init_argv = config_.init_argv;
  bundle.first_uid = disks_.first_uid(spec.slot);
  bundle.cgroup_path = cgroups_.runc_path(spec.id.str());
  bundle.cpuset = spec.cpuset;
  bundle.memory_bytes = spec.memory_bytes;
  bundle.pids_max = spec.pids_max;
  bundle.swap_limit = cgroups_.has_swap_accounting();
  bundle.cgroup_v2 = cgroups_.unified();
  bundle.open_files_max = open_files_limit();
  bundle.seccomp = seccomp_;
  if (!config_.toolbox_dir.empty()) {
    struct statvfs space{};
    const bool no_exec =
        ::statvfs(config_.toolbox_dir.c_str(), &space) == 0 && (space.f_flag & ST_NOEXEC) != 0;
    if (no_exec)
      return Error(ErrorKind::kInvalid, "toolbox_noexec",
                   fmt::format("toolbox '{}' lies on a noexec file system", config_.toolbox_dir));
    bundle.mounts.push_back({config_.toolbox_dir, "/opt/autodl", true, false, false});
  }
  bundle.mounts.push_back({disk + "/boot", "/run/autodl/boot", false, false, false});
  bundle.mounts.push_back({disk + "/data", "/root/autodl-tmp", false, false, false});
  for (const char* name : {"hosts", "hostname", "resolv.conf"})
    bundle.mounts.push_back(
        {fmt::format("{}/etc/{}", disk, name), fmt::format("/etc/{}", name), false, false, false});
  for (const auto& item : spec.devices) ADL_TRY_STATUS(add_device(item, bundle));
  return bundle;
}

Status RuncRuntime::build_container(const ContainerSpec& spec) {
  auto written = write_instance_files(spec);
  if (!written.ok() && written.error().kind() == ErrorKind::kExhausted) {
    ADL_TRY_STATUS(disks_.give_up_spare(spec.id));
    written = write_instance_files(spec);
  }
  if (!written.ok()) return written;
  disks_.keep_spare(spec.id);
  ADL_TRY(bundle, bundle_for(spec));
  ADL_TRY(log, logs_.open(spec.id, spec.run));
  ADL_TRY(init, containers_.create(spec.id, make_bundle(bundle), log));
  ADL_TRY_STATUS(network_.attach(spec.slot, init.pid));
  return containers_.mark_created(spec.id, spec.run, spec.slot, init);
}

Status RuncRuntime::create_container(const ContainerSpec& spec) {
  if (const auto record = containers_.created(spec.id)) {
    if (record->run != spec.run)
      return conflict("other_container",
                      fmt::format("instance {} still has the container of run {}", spec.id.str(),
                                  record->run.str()));
    if (containers_.status(spec.id).phase == ContainerPhase::kExited)
      return conflict("already_ran",
                      fmt::format("the container of run {} has ended", spec.run.str()));
    return {};
  }
  ADL_TRY_STATUS(check_spec(spec));
  auto built = build_container(spec);
  if (built.ok()) return {};
  // Nothing ran yet: whatever is there of it goes.
  for (const auto& undone :
       {containers_.remove(spec.id), network_.detach(spec.slot), logs_.archive(spec.id)})
    if (!undone.ok())
      log_warn("runtime", "undo container of {}: {}", spec.id.str(), undone.error().message());
  return built.error().context(fmt::format("create container of instance {}", spec.id.str()));
}

Status RuncRuntime::start_container(const InstanceId& id, const RunId& run) {
  const auto now = containers_.status(id);
  if (now.phase == ContainerPhase::kNone || now.run != run)
    return conflict("no_container",
                    fmt::format("instance {} has no container of run {}", id.str(), run.str()));
  if (now.phase == ContainerPhase::kRunning) return {};
  if (now.phase == ContainerPhase::kExited)
    return conflict("already_ran", fmt::format("the container of run {} has ended", run.str()));
  auto started = containers_.start(id);
  if (started.ok() || containers_.status(id).phase == ContainerPhase::kRunning) return {};
  return started;
}

Result<ContainerStatus> RuncRuntime::status(const InstanceId& id) {
  auto state = containers_.status(id);
  if (state.phase == ContainerPhase::kExited) {
    // Only root writes names into the disk's top folder, and boot/ is one level below it.
    auto record = read_hostile_file(disks_.mount_point(id) + "/boot/exit.json", kExitRecordMax);
    if (record.ok()) state.exit_record = std::move(record).value();
  }
  return state;
}

Result<UniqueFd> RuncRuntime::watch(const InstanceId& id) {
  const auto record = containers_.created(id);
  if (!record)
    return conflict("no_container", fmt::format("instance {} has no container", id.str()));
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, record->init.pid, 0)));
  // Opened, then asked: if it is still that process now, the descriptor is its.
  if (fd.valid() && containers_.status(id).phase != ContainerPhase::kExited) return fd;
  UniqueFd gone(::eventfd(1, EFD_CLOEXEC));
  if (!gone.valid()) return errno_error("make an event", errno);
  return gone;
}

Status RuncRuntime::kill_container(const InstanceId& id) {
  return containers_.kill(id);
}

Status RuncRuntime::remove_container(const InstanceId& id) {
  std::optional<std::uint32_t> slot;
  if (const auto disk = disks_.record(id); disk.ok()) slot = disk->slot;
  if (const auto record = containers_.created(id)) slot = record->slot;
  // The folder goes last, so that a death before the end finds the same work to do.
  if (slot && containers_.any_trace(id)) {
    ADL_TRY_STATUS(network_.detach(*slot));
    ADL_TRY_STATUS(containers_.kill(id));
  }
  ADL_TRY_STATUS(containers_.remove(id));
  if (slot) ADL_TRY_STATUS(network_.detach(*slot));
  return logs_.archive(id);
}

Status RuncRuntime::release_root(const InstanceId& id) {
  if (containers_.any_trace(id))
    return conflict("container_exists", fmt::format("instance {} still has a container", id.str()));
  return roots_.release(id);
}

Status RuncRuntime::destroy(const InstanceId& id) {
  ADL_TRY_STATUS(remove_container(id));
  ADL_TRY_STATUS(roots_.release(id));
  return disks_.destroy(id);
}

std::string RuncRuntime::address_of(std::uint32_t slot) {
  return network_.address_of(slot);
}

Result<ContainerRuntime::Namespaces> RuncRuntime::namespaces(const InstanceId& id,
                                                             std::uint32_t slot) {
  const auto now = containers_.status(id);
  if (now.phase != ContainerPhase::kRunning) return roots_.make_namespaces(id, slot);
  const auto open_ns = [&](const char* name) {
    return UniqueFd(
        ::open(fmt::format("/proc/{}/ns/{}", now.pid, name).c_str(), O_RDONLY | O_CLOEXEC));
  };
  Namespaces spaces;
  spaces.user = open_ns("user");
  spaces.mount = open_ns("mnt");
  spaces.root = "/";
  // The process may have gone between the look and the opening, and its number been given away.
  if (!spaces.user.valid() || !spaces.mount.valid() ||
      containers_.status(id).phase != ContainerPhase::kRunning)
    return roots_.make_namespaces(id, slot);
  return spaces;
}

std::string RuncRuntime::log_path(const InstanceId& id, const RunId& run) {
  return logs_.path(id, run);
}

Result<std::int64_t> RuncRuntime::disk_used_bytes(const InstanceId& id) {
  return disks_.used_bytes(id);
}

std::optional<std::int64_t> RuncRuntime::cpu_time_ns(const InstanceId& id) {
  return cgroups_.cpu_time_ns(id.str());
}

}  // namespace autodl
