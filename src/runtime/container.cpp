// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/container.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <thread>

#include "base/clock.hpp"
#include "base/crash_point.hpp"
#include "runtime/host_files.hpp"
#include "runtime/process.hpp"

namespace autodl::runtime {
namespace {

namespace json = boost::json;

constexpr std::chrono::seconds kCreateDeadline{30};
// conmon reads what is left of the output first, however slow the disk is.
constexpr std::chrono::seconds kExitCodeDeadline{10};
constexpr std::size_t kStatMax = 4096;

std::optional<int> parse_int(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  int number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || result.ec != std::errc{} || result.ptr != text.data() + text.size())
    return std::nullopt;
  return number;
}

json::object to_json(const ProcessIdentity& process) {
  return {{"pid", process.pid}, {"start_ticks", process.start_ticks}};
}

ProcessIdentity identity_from(const json::value& value) {
  const auto& object = value.as_object();
  return {object.at("pid").to_number<int>(), object.at("start_ticks").to_number<std::uint64_t>()};
}

// conmon tells on its sync pipe, one JSON object: {"data": N}; N < 0 comes with a message.
Result<int> await_pid(int fd) {
  std::string text;
  const auto end = std::chrono::steady_clock::now() + kCreateDeadline;
  while (text.find('\n') == std::string::npos && text.size() < 65536) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd item{fd, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&item, 1, static_cast<int>(left.count())) == 0)
      return Error(ErrorKind::kUnavailable, "create_timeout",
                   "runc did not create the container in 30 s");
    char buffer[4096];
    const auto got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  boost::system::error_code failed;
  const auto value = json::parse(text.substr(0, text.find('\n')), failed);
  const auto* object = failed ? nullptr : value.if_object();
  const auto* pid = object != nullptr ? object->if_contains("data") : nullptr;
  if (pid != nullptr && pid->is_int64() && pid->as_int64() > 1)
    return static_cast<int>(pid->as_int64());
  const auto* message = object != nullptr ? object->if_contains("message") : nullptr;
  auto words =
      message != nullptr && message->is_string() ? std::string(message->as_string()) : text;
  return Error(ErrorKind::kInternal, "create_failed",
               fmt::format("runc could not create the container: {}", words.substr(0, 600)));
}

void wait_until_gone(const ProcessIdentity& process, std::chrono::milliseconds limit) {
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  if (!fd.valid() || !alive(process)) return;
  pollfd item{fd.get(), POLLIN, 0};
  ::poll(&item, 1, static_cast<int>(limit.count()));
}

}  // namespace

std::optional<std::uint64_t> parse_start_ticks(std::string_view stat) {
  const auto paren = stat.rfind(')');  // the name before it may hold anything
  if (paren == std::string_view::npos || paren + 3 >= stat.size()) return std::nullopt;
  auto rest = stat.substr(paren + 2);
  if (rest.front() == 'Z' || rest.front() == 'X') return std::nullopt;
  for (int field = 3; field < 22; ++field) {
    const auto space = rest.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(space + 1);
  }
  std::uint64_t ticks = 0;
  const auto result = std::from_chars(rest.data(), rest.data() + rest.size(), ticks);
  if (result.ec != std::errc{}) return std::nullopt;
  return ticks;
}

std::optional<ProcessIdentity> identify(int pid) {
  if (pid <= 1) return std::nullopt;
  const auto stat = read_small_file(fmt::format("/proc/{}/stat", pid), kStatMax);
  const auto ticks = stat.ok() ? parse_start_ticks(*stat) : std::nullopt;
  if (!ticks) return std::nullopt;
  return ProcessIdentity{pid, *ticks};
}

bool alive(const ProcessIdentity& process) {
  return identify(process.pid) == process;
}

Containers::Containers(const RuntimeConfig& config, const Cgroups& cgroups)
    : config_(config), cgroups_(cgroups), boot_id_(SystemClock().boot_id()) {}

std::string Containers::folder(const InstanceId& id) const {
  return fmt::format("{}/c/{}", config_.run_dir, id.str());
}

Status Containers::prepare() {
  ADL_TRY_STATUS(make_folder(runc_root(), 0700));
  return make_folder(config_.run_dir + "/c", 0700);
}

std::vector<std::string> Containers::conmon_argv(const InstanceId& id,
                                                 const std::string& log_path) const {
  const auto& name = id.str();
  const auto bundle = folder(id);
  return {"conmon",
          "--api-version",
          "1",
          "-c",
          name,
          "-u",
          name,
          "-n",
          name,
          "-r",
          "runc",
          "--runtime-arg=--root=" + runc_root(),
          "-b",
          bundle,
          "-p",
          bundle + "/pid",
          "--conmon-pidfile",
          bundle + "/conmon.pid",
          "--exit-dir",
          bundle + "/exit",
          "-l",
          "k8s-file:" + log_path,
          "--full-attach",
          "--no-sync-log"};
}

Result<ProcessIdentity> Containers::create(const InstanceId& id, const json::object& bundle,
                                           const std::string& log_path) {
  if (any_trace(id)) ADL_TRY_STATUS(remove(id));
  ADL_TRY_STATUS(make_folder(folder(id) + "/exit", 0700));
  ADL_TRY_STATUS(write_atomically(folder(id) + "/config.json", json::serialize(bundle)));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("make a pipe", errno);
  UniqueFd told(ends[0]), tell(ends[1]);
  ProcessOptions options;
  options.fd3 = tell.get();
  options.env = {"_OCI_SYNCPIPE=3"};
  options.cwd = folder(id);
  options.deadline = kCreateDeadline;
  auto argv = conmon_argv(id, log_path);
  // conmon wants the runtime's whole path.
  for (const char* place : {"/usr/sbin/runc", "/usr/bin/runc", "/usr/local/sbin/runc"})
    if (path_exists(place)) {
      argv[10] = place;
      break;
    }
  crash_point("runtime.runc_create.before");
  ADL_TRY(conmon, run_checked(argv, options));
  tell.reset();
  auto pid = await_pid(told.get());
  crash_point("runtime.runc_create.after");
  if (!pid.ok()) return pid.error();
  const auto init = identify(*pid);
  if (!init) {
    return Error(ErrorKind::kInternal, "create_failed",
                 "the container's first process ended before it was started");
  }
  return *init;
}

Status Containers::mark_created(const InstanceId& id, const RunId& run, std::uint32_t slot,
                                const ProcessIdentity& init) {
  const auto conmon_pid = parse_int(read_small_file(folder(id) + "/conmon.pid", 32).value_or(""));
  const auto conmon = identify(conmon_pid.value_or(0)).value_or(ProcessIdentity{});
  const json::object record = {{"run", run.str()},
                               {"slot", slot},
                               {"init", to_json(init)},
                               {"conmon", to_json(conmon)},
                               {"boot_id", boot_id_}};
  crash_point("runtime.created.before");
  // Not synced: after a power cut there is no container, whatever stands here (boot_id).
  ADL_TRY_STATUS(write_atomically(folder(id) + "/created.json", json::serialize(record)));
  crash_point("runtime.created.after");
  return {};
}

std::optional<CreatedRecord> Containers::created(const InstanceId& id) const {
  const auto text = read_small_file(folder(id) + "/created.json", 4096);
  if (!text.ok()) return std::nullopt;
  try {
    const auto value = json::parse(*text);
    const auto& object = value.as_object();
    return CreatedRecord{RunId(std::string(object.at("run").as_string())),
                         object.at("slot").to_number<std::uint32_t>(),
                         identity_from(object.at("init")), identity_from(object.at("conmon")),
                         std::string(object.at("boot_id").as_string())};
  } catch (const std::exception&) {
    return std::nullopt;  // torn by a power cut: as if it had not been written
  }
}

bool Containers::any_trace(const InstanceId& id) const {
  return path_exists(folder(id)) || path_exists(runc_root() + "/" + id.str()) ||
         !cgroups_.folders(id.str()).empty();
}

std::vector<InstanceId> Containers::list() const {
  std::vector<InstanceId> ids;
  for (const auto& name : list_names(config_.run_dir + "/c")) ids.emplace_back(name);
  return ids;
}

Status Containers::start(const InstanceId& id) {
  crash_point("runtime.runc_start.before");
  auto done = run_checked({"runc", "--root", runc_root(), "start", id.str()});
  crash_point("runtime.runc_start.after");
  if (!done.ok()) return done.error().context(fmt::format("start instance {}", id.str()));
  return {};
}

std::optional<int> Containers::exit_code(const InstanceId& id) const {
  const auto text = read_small_file(folder(id) + "/exit/" + id.str(), 32);
  return text.ok() ? parse_int(*text) : std::nullopt;
}

// conmon writes the code moments after the process has ended, if it lives.
std::optional<int> Containers::await_exit_code(const InstanceId& id,
                                               const ProcessIdentity& conmon) const {
  const auto end = std::chrono::steady_clock::now() + kExitCodeDeadline;
  for (;;) {
    const bool lives = alive(conmon);
    if (auto code = exit_code(id)) return code;
    if (!lives || std::chrono::steady_clock::now() > end) return std::nullopt;
    wait_until_gone(conmon, std::chrono::milliseconds{20});
  }
}

ContainerStatus Containers::status(const InstanceId& id) const {
  ContainerStatus status;
  const auto record = created(id);
  if (!record) return status;
  status.run = record->run;
  status.out_of_memory = cgroups_.oom_kills(id.str()) > 0;
  status.memory_peak_bytes = cgroups_.memory_peak_bytes(id.str());
  if (record->boot_id == boot_id_ && alive(record->init)) {
    const bool waits = path_exists(runc_root() + "/" + id.str() + "/exec.fifo");
    status.phase = waits ? ContainerPhase::kCreated : ContainerPhase::kRunning;
    status.pid = record->init.pid;
    return status;
  }
  status.phase = ContainerPhase::kExited;
  status.exit_code =
      record->boot_id == boot_id_ ? await_exit_code(id, record->conmon) : exit_code(id);
  struct stat info{};
  if (status.exit_code && ::stat((folder(id) + "/exit/" + id.str()).c_str(), &info) == 0)
    status.exited_utc_ms =
        std::int64_t{info.st_mtim.tv_sec} * 1000 + info.st_mtim.tv_nsec / 1'000'000;
  return status;
}

Status Containers::kill(const InstanceId& id) const {
  if (const auto record = created(id); record && record->boot_id == boot_id_ && alive(record->init))
    ::kill(record->init.pid, SIGKILL);
  cgroups_.kill_all(id.str());
  return {};
}

// It ends by itself once it has the exit code; one that does not (its runc hangs) is killed.
void Containers::end_conmon(const InstanceId& id) const {
  const auto pid = parse_int(read_small_file(folder(id) + "/conmon.pid", 32).value_or(""));
  const auto record = created(id);
  auto conmon = identify(pid.value_or(0));
  if (record && record->boot_id != boot_id_) return;
  if (!conmon) return;
  const auto command = read_small_file(fmt::format("/proc/{}/cmdline", conmon->pid)).value_or("");
  if (command.find(folder(id)) == std::string::npos) return;  // the number is another's now
  wait_until_gone(*conmon, std::chrono::milliseconds{1000});
  if (alive(*conmon)) ::kill(conmon->pid, SIGKILL);
  wait_until_gone(*conmon, std::chrono::milliseconds{1000});
}

// A node that died in create() left a conmon and a runc behind that go on building.
void Containers::end_builders(const InstanceId& id) const {
  for (const auto& name : list_names("/proc")) {
    const auto process = identify(parse_int(name).value_or(0));
    if (!process) continue;
    const auto command = read_small_file(fmt::format("/proc/{}/cmdline", name)).value_or("");
    if (command.find(folder(id) + '\0') == std::string::npos) continue;
    ::kill(process->pid, SIGKILL);
    wait_until_gone(*process, std::chrono::milliseconds{2000});
  }
}

Status Containers::remove(const InstanceId& id) const {
  if (!created(id)) end_builders(id);
  ADL_TRY_STATUS(kill(id));
  end_conmon(id);
  if (path_exists(runc_root() + "/" + id.str())) {
    ProcessOptions options;
    options.deadline = std::chrono::seconds{30};
    crash_point("runtime.runc_delete.before");
    auto done =
        run_checked({"runc", "--root", runc_root(), "delete", "--force", id.str()}, options);
    crash_point("runtime.runc_delete.after");
    if (!done.ok() && done.error().code() != "tool_failed") return done.error();
    // State of a runc that was itself cut off can't be loaded: the processes in the cgroup are all
    // there is of the container, and they go below.
    ADL_TRY_STATUS(remove_tree(runc_root() + "/" + id.str()));
  }
  ADL_TRY_STATUS(cgroups_.remove(id.str()));
  crash_point("runtime.container_folder.before");
  ADL_TRY_STATUS(remove_tree(folder(id)));
  crash_point("runtime.container_folder.after");
  return {};
}

}  // namespace autodl::runtime
