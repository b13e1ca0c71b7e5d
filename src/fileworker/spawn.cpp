// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "fileworker/spawn.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace autodl {
namespace {

constexpr int kFirst = 3;  // 3 channel, 4 user namespace, 5 mount namespace
constexpr int kReport = 6;
constexpr unsigned kCloseOnExec = 4;  // CLOSE_RANGE_CLOEXEC

// Between fork and exec of a process with threads: system calls only.
[[noreturn]] void child(const char* program, char* const argv[], const int (&wanted)[4],
                        int cgroup_fd) {
  const auto give_up = [](int report) {
    const int error = errno;
    static_cast<void>(write(report, &error, sizeof error));
    _exit(127);
  };
  int moved[4];
  for (int i = 0; i < 4; ++i) {
    moved[i] = fcntl(wanted[i], F_DUPFD_CLOEXEC, 20);
    if (moved[i] < 0) _exit(126);
  }
  if (cgroup_fd >= 0 && write(cgroup_fd, "0", 1) != 1) give_up(moved[3]);
  for (int i = 0; i < 3; ++i)
    if (dup2(moved[i], kFirst + i) < 0) give_up(moved[3]);
  if (dup3(moved[3], kReport, O_CLOEXEC) < 0) give_up(moved[3]);
  const int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null_fd, STDIN_FILENO);
  dup2(null_fd, STDOUT_FILENO);  // stderr stays the node's log
  syscall(SYS_close_range, static_cast<unsigned>(kReport), ~0U, kCloseOnExec);
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) sigaction(number, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  setsid();
  char* const envp[] = {nullptr};
  execve(program, argv, envp);
  give_up(kReport);
  _exit(127);
}

}  // namespace

Result<FileWorkerProcess> spawn_file_worker(const FileWorkerSpec& spec) {
  int pair[2];
  int pipe_ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return errno_error("make a socketpair", errno, ErrorKind::kExhausted);
  UniqueFd ours(pair[0]);
  UniqueFd theirs(pair[1]);
  if (pipe2(pipe_ends, O_CLOEXEC) != 0)
    return errno_error("make a pipe", errno, ErrorKind::kExhausted);
  const UniqueFd reading(pipe_ends[0]);
  UniqueFd writing(pipe_ends[1]);
  UniqueFd cgroup;
  if (!spec.cgroup.empty()) {
    const std::string path = spec.cgroup + "/cgroup.procs";
    cgroup.reset(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!cgroup.valid()) return errno_error("open '" + path + "'", errno);
  }
  std::string name = "autodl-fileworker";
  std::string root = spec.root.empty() ? "/" : spec.root;
  char* const argv[] = {name.data(), root.data(), nullptr};
  const int wanted[4] = {theirs.get(), spec.user_namespace, spec.mount_namespace, writing.get()};
  const pid_t pid = fork();
  if (pid < 0) return errno_error("start a file worker", errno, ErrorKind::kExhausted);
  if (pid == 0) child(spec.program.c_str(), argv, wanted, cgroup.get());
  writing.reset();
  theirs.reset();
  int error = 0;
  ssize_t got = 0;
  do {
    got = read(reading.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof error)) {
    waitpid(pid, nullptr, 0);
    return errno_error("execute '" + spec.program + "'", error);
  }
  return FileWorkerProcess{pid, std::move(ours)};
}

}  // namespace autodl
