// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The command's start and every way to the end.
//
//   command ended ───────────────────────────────────────────────▶ finish: record, exit frame, end
//   stop: INT ─(grace/2)▶ TERM ─(grace/2)▶ KILL ─▶ nobody left ─▶ finish
//   without a command: TERM ─(grace/2, or only shells left)▶ HUP ─(grace/2)▶ KILL …
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "init/files.hpp"
#include "init/init.hpp"

namespace autodl::init {
namespace {

constexpr Millis kLookAgain{50};  // for processes that are not our children and so send no SIGCHLD
constexpr Millis kAfterKill{5'000};
constexpr int kCommandNotFound = 127;
constexpr int kNotExecutable = 126;

// Whether every process but this one ignores the signal (SigIgn in /proc/PID/status).
bool all_ignore(int signal) {
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), &closedir);
  if (!proc) return false;
  while (const dirent* entry = readdir(proc.get())) {
    const std::string_view name = entry->d_name;
    if (name == "1" || name.find_first_not_of("0123456789") != std::string_view::npos) continue;
    const int fd = open(fmt::format("/proc/{}/status", name).c_str(), O_RDONLY | O_CLOEXEC);
    const UniqueFd file(fd);
    char text[4096];
    const ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text);
    if (got <= 0) continue;  // gone meanwhile
    const std::string_view status(text, static_cast<std::size_t>(got));
    const auto at = status.find("\nSigIgn:\t");
    if (at == std::string_view::npos) return false;
    const std::string mask(status.substr(at + 9, 16));
    if ((std::strtoull(mask.c_str(), nullptr, 16) >> (signal - 1) & 1U) == 0) return false;
  }
  return true;
}

}  // namespace

void Init::start_command() {
  ProcessSpec spec;
  spec.argv = {shell_path(), "-c", *setup_->command};
  spec.env = host_.environment;
  spec.cwd = setup_->workdir;
  spec.stdout_fd = STDOUT_FILENO;  // the log: conmon's pipes
  spec.stderr_fd = STDERR_FILENO;
  const auto pid = start_process(spec);
  if (pid.ok()) {
    command_ = pid.value();
    children_.on_exit(command_, [this](ExitStatus status) { command_ended(status); });
    return;
  }
  const std::string text =
      fmt::format("autodl: {}{}{}\n", pid.error().message(),
                  pid.error().remedy().empty() ? "" : "; ", pid.error().remedy());
  static_cast<void>(write(STDERR_FILENO, text.data(), text.size()));
  command_ended({pid.error().code() == "not_executable" ? kNotExecutable : kCommandNotFound, {}});
}

void Init::command_ended(ExitStatus status) {
  command_ = 0;
  finish(status);
}

// Every process but this one. PID 1 is never hit by kill(-1).
void Init::signal_all(int signal) {
  kill(-1, signal);
}

bool Init::others_left() const {
  return kill(-1, 0) == 0 || errno != ESRCH;
}

void Init::begin_stop(Millis grace) {
  if (ended_) return;
  if (stopping_) {  // asked again: only ever sooner
    if (grace >= stop_grace_) return;
    stop_grace_ = grace;
    if (grace.count() == 0) enter_stop_stage(StopStage::kKill);
    return;
  }
  stopping_ = true;
  stop_grace_ = grace;
  // Without a command there is nobody for whom INT has a meaning; without grace, only KILL.
  if (grace.count() == 0) return enter_stop_stage(StopStage::kKill);
  enter_stop_stage(command_ > 0 ? StopStage::kInt : StopStage::kTerm);
}

void Init::enter_stop_stage(StopStage stage) {
  loop_.cancel(stop_timer_);
  if (ended_) return;
  if (!others_left()) return finish(stopped_status());
  stop_stage_ = stage;
  const Millis half = stop_grace_ / 2;
  switch (stage) {
    case StopStage::kInt: signal_all(SIGINT); return wait_for_others(half, StopStage::kTerm);
    case StopStage::kTerm:
      signal_all(SIGTERM);
      signal_all(SIGCONT);
      return wait_for_others(half, command_ > 0 ? StopStage::kKill : StopStage::kHangUp);
    // Not sooner, and not where a command runs: a program that saves its work on TERM may know
    // nothing of HUP and would be cut off.
    case StopStage::kHangUp: signal_all(SIGHUP); return wait_for_others(half, StopStage::kKill);
    case StopStage::kKill: signal_all(SIGKILL); return wait_for_others(kAfterKill, StopStage::kEnd);
    // Unkillable (stuck in the kernel): PID 1's end takes the rest along.
    case StopStage::kEnd: return finish(stopped_status());
  }
}

// How the run ended, where it was not the command's own end.
ExitStatus Init::stopped_status() const {
  if (setup_ && setup_->command) return {std::nullopt, SIGKILL};  // it never came to its end
  return {0, std::nullopt};
}

// The next stage after left, or as soon as it makes sense.
void Init::wait_for_others(Millis left, StopStage next) {
  const Millis step = std::min(left, kLookAgain);
  stop_timer_ = loop_.after(step, [this, left, step, next] {
    const bool only_shells = stop_stage_ == StopStage::kTerm && next == StopStage::kHangUp &&
                             all_ignore(SIGTERM);  // interactive shells do
    if (left <= step || only_shells || !others_left()) return enter_stop_stage(next);
    wait_for_others(left - step, next);
  });
}

void Init::finish(ExitStatus status) {
  if (ended_) return;
  ended_ = ExitRecord{setup_ ? setup_->run : RunId(), status, shutdown_asked_};
  exit_code_ = status.exit_code ? *status.exit_code : 128 + status.signal.value_or(SIGKILL);
  const std::string json = to_json(*ended_);
  if (auto saved = write_file_atomic(paths_.boot_dir + "/exit.json", json, 0644); !saved.ok()) {
    // The exit code of this process still tells it, through conmon.
    send(InitFrame::kReport,
         to_json(InitReport{"warning", "exit record: " + saved.error().message()}));
  }
  send(InitFrame::kEnded, json);
  if (control_) control_->finish();
  loop_.stop();
}

}  // namespace autodl::init
