// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "init/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/unique_fd.hpp"

namespace autodl::init {
namespace {

constexpr const char* kToolboxShell = "/opt/autodl/bin/sh";

enum class Step : int { kCwd = 1, kExec = 2, kOther = 3 };
struct Failure {
  Step step;
  int error;
};

// Everything the child needs, made before fork: after it only system calls are allowed.
struct Prepared {
  std::vector<std::string> candidates;
  std::vector<char*> argv;
  std::vector<std::string> env_texts;
  std::vector<char*> envp;
  std::string shell;
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> candidates_of(const std::string& program, const std::string& path) {
  if (program.find('/') != std::string::npos) return {program};
  std::vector<std::string> candidates;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const std::string folder = path.substr(at, end - at);
    candidates.push_back(folder.empty() ? program : folder + "/" + program);
    at = end + 1;
  }
  return candidates;
}

void reset_signals() {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) sigaction(number, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// dup2 to 0-2 from descriptors that may themselves be 0-2: copies above first.
bool place_descriptors(const ProcessSpec& spec) {
  const int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  int sources[3] = {spec.stdin_fd, spec.stdout_fd, spec.stderr_fd};
  for (int& source : sources) {
    source = fcntl(source < 0 ? null_fd : source, F_DUPFD_CLOEXEC, 10);
    if (source < 0) return false;
  }
  for (int target = 0; target < 3; ++target)
    if (dup2(sources[target], target) < 0) return false;
  return true;
}

// Executes the first candidate that can be; returns the errno that says most.
int execute(Prepared& prepared) {
  int best = ENOENT;
  for (const std::string& candidate : prepared.candidates) {
    execve(candidate.c_str(), prepared.argv.data(), prepared.envp.data());
    if (errno == ENOEXEC) {  // a script without "#!": by the shell, as execvp does
      std::vector<char*> by_shell = prepared.argv;
      by_shell[0] = const_cast<char*>(candidate.c_str());
      by_shell.insert(by_shell.begin(), prepared.shell.data());
      execve(prepared.shell.c_str(), by_shell.data(), prepared.envp.data());
    }
    if (errno != ENOENT && errno != ENOTDIR) best = errno;
  }
  return best;
}

[[noreturn]] void child(const ProcessSpec& spec, Prepared& prepared, int report_fd) {
  const auto give_up = [&](Step step, int error) {
    const Failure failure{step, error};
    static_cast<void>(write(report_fd, &failure, sizeof failure));
    _exit(127);
  };
  reset_signals();
  setsid();
  if (!place_descriptors(spec)) give_up(Step::kOther, errno);
  if (spec.terminal && ioctl(STDIN_FILENO, TIOCSCTTY, 0) != 0) give_up(Step::kOther, errno);
  // Everything else closes at exec; the report's descriptor must live until then.
  syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */);
  umask(022);
  if (chdir(spec.cwd.c_str()) != 0) give_up(Step::kCwd, errno);
  give_up(Step::kExec, execute(prepared));
  _exit(127);
}

Error to_error(const ProcessSpec& spec, const Failure& failure) {
  const std::string why = std::generic_category().message(failure.error);
  if (failure.step == Step::kCwd)
    return Error(ErrorKind::kInvalid, "bad_cwd",
                 fmt::format("the working folder '{}' can't be entered: {}", spec.cwd, why),
                 "create it, or choose another");
  if (failure.step == Step::kExec && failure.error == ENOENT) {
    const bool by_path = spec.argv[0].find('/') == std::string::npos;
    return Error(ErrorKind::kInvalid, "command_not_found",
                 by_path ? fmt::format("'{}' is in no folder of PATH", spec.argv[0])
                         : fmt::format("'{}' does not exist (or its interpreter)", spec.argv[0]));
  }
  if (failure.step == Step::kExec)
    return Error(ErrorKind::kInvalid, "not_executable",
                 fmt::format("'{}' can't be executed: {}", spec.argv[0], why));
  return Error(ErrorKind::kExhausted, "spawn_failed",
               fmt::format("'{}' can't be started: {}", spec.argv[0], why));
}

}  // namespace

std::string shell_path() {
  return access("/bin/sh", X_OK) == 0 ? "/bin/sh" : kToolboxShell;
}

Result<pid_t> start_process(const ProcessSpec& spec) {
  Prepared prepared;
  const auto path = spec.env.find("PATH");
  prepared.candidates = candidates_of(spec.argv.at(0), path == spec.env.end() ? "" : path->second);
  prepared.argv = pointers(spec.argv);
  for (const auto& [name, value] : spec.env) prepared.env_texts.push_back(name + "=" + value);
  prepared.envp = pointers(prepared.env_texts);
  prepared.shell = shell_path();

  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return to_error(spec, {Step::kOther, errno});
  UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const pid_t pid = fork();
  if (pid < 0) return to_error(spec, {Step::kOther, errno});
  if (pid == 0) child(spec, prepared, writing.get());
  writing.reset();
  Failure failure{};
  ssize_t got = 0;
  do {
    got = read(reading.get(), &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof failure)) return pid;
  waitpid(pid, nullptr, 0);
  return to_error(spec, failure);
}

void Children::reap() {
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid <= 0) return;
    const auto found = handlers_.find(pid);
    if (found == handlers_.end()) continue;
    const Handler handler = std::move(found->second);
    handlers_.erase(found);
    ExitStatus exit;
    if (WIFSIGNALED(status))
      exit.signal = WTERMSIG(status);
    else
      exit.exit_code = WEXITSTATUS(status);
    handler(exit);
  }
}

}  // namespace autodl::init
