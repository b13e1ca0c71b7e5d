// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "supervisor.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "base/log.hpp"
#include "base/unique_fd.hpp"

namespace autodl {

namespace {
constexpr std::chrono::milliseconds kPauseFirst{100};
constexpr std::chrono::milliseconds kPauseMax{5'000};
constexpr std::chrono::seconds kHealthyAfter{10};

// "node=name:2" of AUTODL_CRASH_ONCE: the first start of this role gets AUTODL_CRASH_AT=name:2.
std::string crash_of(std::string_view role) {
  const char* once = std::getenv("AUTODL_CRASH_ONCE");
  if (once == nullptr) return {};
  const std::string_view text(once);
  const auto equals = text.find('=');
  if (equals == std::string_view::npos || text.substr(0, equals) != role) return {};
  return std::string(text.substr(equals + 1));
}
}  // namespace

Supervisor::Supervisor(std::vector<std::string> roles, std::vector<std::string> arguments,
                       const Clock& clock)
    : arguments_(std::move(arguments)), clock_(clock) {
  for (auto& role : roles) children_.push_back({.role = std::move(role)});
}

Status Supervisor::start(Child& child) {
  std::vector<std::string> words = {"autodld", child.role};
  words.insert(words.end(), arguments_.begin(), arguments_.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const auto crash = child.started_once ? std::string() : crash_of(child.role);
  const pid_t supervisor = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error("start " + child.role, errno);
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != supervisor) ::_exit(1);  // it died in between
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::unsetenv("AUTODL_CRASH_ONCE");
    if (!crash.empty()) ::setenv("AUTODL_CRASH_AT", crash.c_str(), 1);
    ::execv("/proc/self/exe", argv.data());
    ::_exit(127);
  }
  child.pid = pid;
  child.started = clock_.steady_now();
  child.started_once = true;
  return {};
}

void Supervisor::reap() {
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid <= 0) return;
    for (auto& child : children_) {
      if (child.pid != pid) continue;
      child.pid = -1;
      const auto now = clock_.steady_now();
      if (now - child.started > kHealthyAfter) child.pause = kPauseFirst;
      child.start_at = now + child.pause;
      child.pause = std::min(child.pause * 2, kPauseMax);
      if (WIFSIGNALED(status))
        log_warn("serve", "{} was killed by signal {}", child.role, WTERMSIG(status));
      else
        log_warn("serve", "{} ended with {}", child.role, WEXITSTATUS(status));
    }
  }
}

void Supervisor::start_due() {
  for (auto& child : children_) {
    if (child.pid > 0 || child.start_at > clock_.steady_now()) continue;
    if (const auto started = start(child); !started.ok()) {
      log_error("serve", "{}", started.error().message());
      child.start_at = clock_.steady_now() + kPauseMax;
    }
  }
}

std::chrono::milliseconds Supervisor::next_wait() const {
  std::chrono::milliseconds wait{60'000};
  for (const auto& child : children_)
    if (child.pid <= 0)
      wait = std::min(wait, std::chrono::ceil<std::chrono::milliseconds>(
                                std::max(child.start_at - clock_.steady_now(), SteadyTime{})));
  return wait;
}

bool Supervisor::any_running() const {
  return std::any_of(children_.begin(), children_.end(), [](const Child& c) { return c.pid > 0; });
}

Status Supervisor::stop_all(int signal_fd) {
  for (const auto& child : children_)
    if (child.pid > 0) ::kill(child.pid, SIGTERM);
  const auto end = clock_.steady_now() + kStopGrace;
  while (any_running()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - clock_.steady_now());
    if (left.count() <= 0) break;
    pollfd event{signal_fd, POLLIN, 0};
    ::poll(&event, 1, static_cast<int>(left.count()));
    signalfd_siginfo info{};
    if ((event.revents & POLLIN) != 0) [[maybe_unused]]
      const auto got = ::read(signal_fd, &info, sizeof info);
    reap();
  }
  for (const auto& child : children_)
    if (child.pid > 0) ::kill(child.pid, SIGKILL);
  for (auto& child : children_)
    if (child.pid > 0) ::waitpid(child.pid, nullptr, 0);
  return {};
}

Status Supervisor::run() {
  sigset_t watched;
  ::sigemptyset(&watched);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&watched, number);
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);
  const UniqueFd signals(::signalfd(-1, &watched, SFD_CLOEXEC));
  if (!signals.valid()) return errno_error("watch signals", errno);
  for (;;) {
    start_due();
    pollfd event{signals.get(), POLLIN, 0};
    if (::poll(&event, 1, static_cast<int>(next_wait().count())) < 0 && errno != EINTR)
      return errno_error("wait for children", errno);
    if ((event.revents & POLLIN) == 0) continue;
    signalfd_siginfo info{};
    if (::read(signals.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) continue;
    reap();
    if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT) return stop_all(signals.get());
  }
}

}  // namespace autodl
