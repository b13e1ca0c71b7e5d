// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_inventory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/log.hpp"
#include "gpu/nvml_protocol.hpp"

namespace autodl {
namespace {

constexpr std::string_view kRequest = "query\n";

// posix_spawn's two settings objects, freed together.
struct SpawnSettings {
  posix_spawn_file_actions_t files{};
  posix_spawnattr_t attributes{};
  SpawnSettings() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (auto& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

Error timeout(std::chrono::milliseconds deadline) {
  return Error(ErrorKind::kUnavailable, "nvml_timeout",
               fmt::format("the NVIDIA driver gave no answer within {} ms; its child was killed",
                           deadline.count()),
               "look for Xid lines in the kernel log; a card that hangs needs a reset or a reboot");
}

Error crashed(std::string_view how) {
  return Error(ErrorKind::kUnavailable, "nvml_crashed", fmt::format("the NVML child {}", how),
               "if it goes on, check that libnvidia-ml and the kernel module are of one version");
}

}  // namespace

NvmlInventory::NvmlInventory(NvmlConfig config, const Clock& clock)
    : config_(std::move(config)), clock_(clock) {}

NvmlInventory::~NvmlInventory() {
  const std::lock_guard lock(mutex_);
  if (pid_ != 0) {
    kill(pid_, SIGKILL);
    dying_.push_back(pid_);
  }
  socket_.reset();
  reap();
}

std::uint64_t NvmlInventory::restarts() const {
  const std::lock_guard lock(mutex_);
  return restarts_;
}

pid_t NvmlInventory::child_pid() const {
  const std::lock_guard lock(mutex_);
  return pid_;
}

// Killed children that have ended by now. A short wait serves the ordinary case; one that sits in
// an uninterruptible call stays on the list.
void NvmlInventory::reap() {
  for (int attempt = 0; attempt < 20 && !dying_.empty(); ++attempt) {
    std::erase_if(dying_, [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
    if (!dying_.empty()) poll(nullptr, 0, 2);
  }
}

Status NvmlInventory::start_child() {
  if (config_.child_argv.empty())
    return Error(ErrorKind::kInternal, "nvml_config", "the NVML child has no command");
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return errno_error("make the NVML child's socket", errno);
  UniqueFd ours(pair[0]);
  const UniqueFd theirs(pair[1]);
  SpawnSettings settings;
  posix_spawn_file_actions_addopen(&settings.files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&settings.files, 2, 1);
  posix_spawn_file_actions_adddup2(&settings.files, theirs.get(), 3);
  posix_spawn_file_actions_addclosefrom_np(&settings.files, 4);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&settings.attributes, &none);
  posix_spawnattr_setsigdefault(&settings.attributes, &all);
  posix_spawnattr_setpgroup(&settings.attributes, 0);
  posix_spawnattr_setflags(&settings.attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  auto argv = config_.child_argv;
  std::vector<std::string> env;
  for (const auto& [name, value] : config_.env) env.push_back(name + "=" + value);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, argv.front().c_str(), &settings.files, &settings.attributes,
                                pointers(argv).data(), pointers(env).data());
  if (error != 0) return errno_error(fmt::format("start the NVML child '{}'", argv.front()), error);
  pid_ = pid;
  socket_ = std::move(ours);
  return {};
}

void NvmlInventory::drop_child(const std::string& why) {
  kill(pid_, SIGKILL);
  dying_.push_back(std::exchange(pid_, 0));
  socket_.reset();
  reap();
  ++restarts_;
  backoff_ =
      backoff_.count() == 0 ? config_.backoff_first : std::min(backoff_ * 2, config_.backoff_max);
  not_before_ = clock_.steady_now() + backoff_;
  last_problem_ = why;
  log_warn("gpu", "{}; started again in {} ms", why, backoff_.count());
}

// The socket closes a moment before the child can be waited for.
std::string NvmlInventory::how_it_ended() const {
  for (int i = 0; i < 50; ++i) {
    siginfo_t info{};
    const auto id = static_cast<id_t>(pid_);
    if (waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_) {
      if (info.si_code == CLD_EXITED) return fmt::format("ended with code {}", info.si_status);
      return fmt::format("was ended by signal {}", info.si_status);
    }
    poll(nullptr, 0, 2);
  }
  return "closed its socket";
}

// One line each way. The child's end is told as how it ended, since that is what an operator needs.
Result<std::string> NvmlInventory::exchange(std::chrono::milliseconds deadline) {
  if (send(socket_.get(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL) < 0)
    return crashed("has gone");
  const auto end = clock_.steady_now() + deadline;
  std::string answer;
  while (answer.empty() || answer.back() != '\n') {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - clock_.steady_now()).count();
    if (left <= 0) return timeout(deadline);
    pollfd watched{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    const int ready = poll(&watched, 1, static_cast<int>(std::min<long>(left, 60'000)));
    if (ready < 0 && errno != EINTR) return errno_error("wait for the NVML child", errno);
    if (ready <= 0) continue;
    char buffer[16'384];
    const auto got = recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) {
      return crashed(how_it_ended());
    }
    answer.append(buffer, static_cast<std::size_t>(got));
    if (answer.size() > kNvmlAnswerMax) return crashed("answered too much");
  }
  answer.pop_back();
  return answer;
}

Result<Inventory> NvmlInventory::query(std::chrono::milliseconds deadline) {
  const std::lock_guard lock(mutex_);
  reap();
  if (pid_ == 0) {
    if (clock_.steady_now() < not_before_)
      return Error(ErrorKind::kUnavailable, "nvml_backoff",
                   fmt::format("the cards can't be asked now: {}", last_problem_));
    ADL_TRY_STATUS(start_child());
  }
  auto answer = exchange(deadline);
  if (!answer.ok()) {
    drop_child(answer.error().message());
    return answer.error();
  }
  auto inventory = parse_inventory(*answer);
  if (!inventory.ok()) {
    // The driver's own refusal is an answer; nonsense means that the child has run wild.
    if (inventory.error().code() != "nvml_failed") drop_child(inventory.error().message());
    return inventory.error();
  }
  backoff_ = {};
  auto merged = keep_lost_cards(known_, std::move(*inventory));
  known_ = merged.cards;
  return merged;
}

}  // namespace autodl
