// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/oci_bundle.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace autodl::runtime {
namespace {

namespace json = boost::json;

// No MKNOD, NET_RAW, NET_ADMIN or SYS_* but SYS_CHROOT (sshd's privilege separation).
constexpr const char* kCapabilities[] = {
    "CAP_CHOWN",  "CAP_DAC_OVERRIDE", "CAP_FSETID",  "CAP_FOWNER",           "CAP_SETGID",
    "CAP_SETUID", "CAP_SETFCAP",      "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT",
    "CAP_KILL",   "CAP_AUDIT_WRITE"};

// As podman masks them.
constexpr const char* kMasked[] = {"/proc/acpi",        "/proc/kcore",
                                   "/proc/keys",        "/proc/latency_stats",
                                   "/proc/sched_debug", "/proc/scsi",
                                   "/proc/timer_list",  "/proc/timer_stats",
                                   "/sys/dev/block",    "/sys/devices/virtual/powercap",
                                   "/sys/firmware",     "/sys/fs/selinux"};
constexpr const char* kReadOnly[] = {"/proc/asound", "/proc/bus", "/proc/fs",
                                     "/proc/irq",    "/proc/sys", "/proc/sysrq-trigger"};

constexpr const char* kNeverAllowed[] = {"bpf",
                                         "userfaultfd",
                                         "perf_event_open",
                                         "io_uring_setup",
                                         "io_uring_enter",
                                         "io_uring_register",
                                         "keyctl",
                                         "add_key",
                                         "request_key",
                                         "init_module",
                                         "finit_module",
                                         "kexec_load",
                                         "open_by_handle_at",
                                         "swapon",
                                         "iopl",
                                         "ioperm"};

template <std::size_t Count>
json::array to_array(const char* const (&items)[Count]) {
  json::array out;
  for (const char* item : items) out.emplace_back(item);
  return out;
}

json::object mount(std::string_view target, std::string_view type, std::string_view source,
                   std::initializer_list<std::string_view> options) {
  json::array list;
  for (const auto option : options) list.emplace_back(option);
  return {
      {"destination", target}, {"type", type}, {"source", source}, {"options", std::move(list)}};
}

json::array standard_mounts(const BundleSpec& spec) {
  const auto shm = spec.memory_bytes > 0 ? fmt::format("size={}", spec.memory_bytes / 2)
                                         : std::string("size=50%");
  const auto run = spec.memory_bytes > 0 ? fmt::format("size={}", spec.memory_bytes / 4)
                                         : std::string("size=25%");
  json::array mounts = {
      mount("/proc", "proc", "proc", {"nosuid", "noexec", "nodev"}),
      mount("/dev", "tmpfs", "tmpfs",
            {"nosuid", "noexec", "strictatime", "mode=755", "size=65536k"}),
      mount("/dev/pts", "devpts", "devpts",
            {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}),
      mount("/dev/shm", "tmpfs", "shm", {"nosuid", "nodev", "mode=1777", shm}),
      mount("/dev/mqueue", "mqueue", "mqueue", {"nosuid", "noexec", "nodev"}),
      mount("/sys", "sysfs", "sysfs", {"nosuid", "noexec", "nodev", "ro"}),
      mount("/run", "tmpfs", "tmpfs", {"nosuid", "nodev", "mode=755", run}),
  };
  if (spec.cgroup_v2)
    mounts.push_back(mount("/sys/fs/cgroup", "cgroup", "cgroup",
                           {"nosuid", "noexec", "nodev", "relatime", "ro"}));
  return mounts;
}

json::object bind(const BundleMount& item) {
  json::array options = {"bind", "nosuid"};
  if (!item.is_device) options.emplace_back("nodev");
  if (item.no_exec) options.emplace_back("noexec");
  options.emplace_back(item.read_only ? "ro" : "rw");
  return {{"destination", item.target},
          {"type", "bind"},
          {"source", item.source},
          {"options", std::move(options)}};
}

json::object resources(const BundleSpec& spec) {
  json::array devices = {json::object{{"allow", false}, {"access", "rwm"}}};
  for (const auto& device : spec.devices)
    devices.push_back(json::object{{"allow", true},
                                   {"type", std::string(1, device.type)},
                                   {"major", device.major},
                                   {"minor", device.minor},
                                   {"access", "rw"}});
  json::object out = {{"devices", std::move(devices)}};
  if (spec.memory_bytes > 0) {
    json::object memory = {{"limit", spec.memory_bytes}};
    if (spec.swap_limit) memory["swap"] = spec.memory_bytes;
    out["memory"] = std::move(memory);
  }
  if (spec.pids_max > 0) out["pids"] = json::object{{"limit", spec.pids_max}};
  if (!spec.cpuset.empty()) out["cpu"] = json::object{{"cpus", spec.cpuset}};
  return out;
}

json::object process(const BundleSpec& spec) {
  json::array argv;
  for (const auto& argument : spec.init_argv) argv.emplace_back(argument);
  const auto capabilities = to_array(kCapabilities);
  return {
      {"terminal", false},
      {"user", json::object{{"uid", 0}, {"gid", 0}}},
      {"args", std::move(argv)},
      {"env", json::array{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                          "container=autodl"}},
      {"cwd", "/"},
      {"capabilities",
       json::object{
           {"bounding", capabilities}, {"effective", capabilities}, {"permitted", capabilities}}},
      {"rlimits", json::array{json::object{{"type", "RLIMIT_NOFILE"},
                                           {"hard", spec.open_files_max},
                                           {"soft", spec.open_files_max}},
                              json::object{{"type", "RLIMIT_CORE"}, {"hard", 0}, {"soft", 0}}}},
      {"noNewPrivileges", false},  // sudo must work inside
  };
}

}  // namespace

json::object make_bundle(const BundleSpec& spec) {
  auto mounts = standard_mounts(spec);
  for (const auto& item : spec.mounts) mounts.push_back(bind(item));
  json::array namespaces;
  for (const char* type : {"pid", "ipc", "uts", "mount", "user", "network"})
    namespaces.push_back(json::object{{"type", type}});
  if (spec.cgroup_v2) namespaces.push_back(json::object{{"type", "cgroup"}});
  const json::array ids = {
      json::object{{"containerID", 0}, {"hostID", spec.first_uid}, {"size", 65536}}};
  return {
      {"ociVersion", "1.0.2"},
      {"hostname", spec.hostname},
      {"root", json::object{{"path", spec.root_path}, {"readonly", false}}},
      {"annotations", json::object{{"autodl.instance", spec.instance}, {"autodl.run", spec.run}}},
      {"process", process(spec)},
      {"mounts", std::move(mounts)},
      {"linux", json::object{{"uidMappings", ids},
                             {"gidMappings", ids},
                             {"namespaces", std::move(namespaces)},
                             {"sysctl", json::object{{"net.ipv4.ip_unprivileged_port_start", "0"},
                                                     {"net.ipv4.ping_group_range", "0 65535"}}},
                             {"cgroupsPath", spec.cgroup_path},
                             {"resources", resources(spec)},
                             {"maskedPaths", to_array(kMasked)},
                             {"readonlyPaths", to_array(kReadOnly)},
                             {"seccomp", spec.seccomp}}},
  };
}

Result<json::value> parse_seccomp(std::string_view text) {
  const auto refuse = [](std::string what) {
    return Error(ErrorKind::kInvalid, "bad_seccomp", "seccomp section: " + std::move(what),
                 "make it with scripts/make-seccomp");
  };
  boost::system::error_code failed;
  auto value = json::parse(text, failed);
  const auto* section = failed ? nullptr : value.if_object();
  if (section == nullptr) return refuse("not a JSON object");
  const auto* action = section->if_contains("defaultAction");
  if (action == nullptr || !action->is_string() || action->as_string() != "SCMP_ACT_ERRNO")
    return refuse("its default action is not SCMP_ACT_ERRNO");
  const auto* rules = section->if_contains("syscalls");
  if (rules == nullptr || !rules->is_array() || rules->as_array().empty())
    return refuse("it lists no system calls");
  for (const auto& rule : rules->as_array()) {
    const auto* object = rule.if_object();
    if (object == nullptr || object->contains("includes") || object->contains("excludes"))
      return refuse("it is a profile, not a resolved section");
    const auto* rule_action = object->if_contains("action");
    const auto* names = object->if_contains("names");
    if (rule_action == nullptr || names == nullptr || !names->is_array())
      return refuse("a rule lacks its action or names");
    if (!rule_action->is_string() || rule_action->as_string() == "SCMP_ACT_ERRNO") continue;
    for (const auto& name : names->as_array())
      for (const char* never : kNeverAllowed)
        if (name.is_string() && name.as_string() == never)
          return refuse(fmt::format("it allows '{}'", never));
  }
  return value;
}

std::string hosts_file(std::string_view hostname, std::string_view address) {
  return fmt::format("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n{}\t{}\n",
                     address, hostname);
}

std::string resolv_file(const std::vector<std::string>& resolvers) {
  std::string text;
  for (const auto& address : resolvers) text += fmt::format("nameserver {}\n", address);
  return text;
}

bool is_hostname(std::string_view text) {
  return !text.empty() && text.size() <= 63 && text.front() != '-' && text.back() != '-' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-';
         });
}

bool is_cpuset(std::string_view text) {
  return text.size() <= 256 && text.find_first_not_of("0123456789,-") == std::string_view::npos;
}

}  // namespace autodl::runtime
