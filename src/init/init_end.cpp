// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The command's start and every way to the end.
//
//   command ended ───────────────────────────────────────────────▶ finish: record, exit frame, end
//   stop: INT ─(grace/2)▶ TERM and HUP ─(grace/2)▶ KILL ─▶ nobody left ─▶ finish
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "init/files.hpp"
#include "init/init.hpp"

namespace autodl::init {
namespace {

constexpr Millis kLookAgain{50};  // for processes that are not our children and so send no SIGCHLD
constexpr Millis kAfterKill{5'000};
constexpr int kCommandNotFound = 127;
constexpr int kNotExecutable = 126;

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
  command_exit_ = status;
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
  if (stopping_) {
    // Asked again: only ever sooner.
    if (grace < stop_grace_) {
      stop_grace_ = grace;
      if (grace.count() == 0) {
        stop_stage_ = 2;
        loop_.cancel(stop_timer_);
        stop_step();
      }
    }
    return;
  }
  stopping_ = true;
  stop_grace_ = grace;
  // Without a command there is nobody for whom INT has a meaning; without grace, only KILL.
  stop_stage_ = grace.count() == 0 ? 2 : (command_ > 0 ? 0 : 1);
  stop_step();
}

void Init::stop_step() {
  if (ended_) return;
  if (!others_left()) return finish(command_exit_.value_or(ExitStatus{0, {}}));
  loop_.cancel(stop_timer_);
  ++stop_stage_;
  const Millis half = stop_grace_ / 2;
  switch (stop_stage_) {
    case 1: signal_all(SIGINT); return wait_for_others(half);
    case 2:
      signal_all(SIGTERM);
      signal_all(SIGHUP);  // interactive shells ignore TERM
      signal_all(SIGCONT);
      return wait_for_others(command_ > 0 ? half : stop_grace_);
    case 3: signal_all(SIGKILL); return wait_for_others(kAfterKill);
    // Unkillable (stuck in the kernel): PID 1's end takes the rest along.
    default: return finish(command_exit_.value_or(ExitStatus{std::nullopt, SIGKILL}));
  }
}

// The next stage after left, or as soon as all have gone.
void Init::wait_for_others(Millis left) {
  const Millis next = std::min(left, kLookAgain);
  stop_timer_ = loop_.after(next, [this, left, next] {
    if (left <= next || !others_left()) return stop_step();
    wait_for_others(left - next);
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
