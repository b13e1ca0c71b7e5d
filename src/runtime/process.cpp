// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/unique_fd.hpp"

namespace autodl::runtime {
namespace {

using Steady = std::chrono::steady_clock;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("make a pipe", errno);
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (auto& text : strings) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// What the child needs, prepared before the fork: after it only async-signal-safe calls are made.
struct Launch {
  std::vector<std::string> args;
  std::vector<std::string> env;
  const char* cwd;
  int in, out, err, fd3, netns;
};

[[noreturn]] void become(Launch& launch, char* const* argv, char* const* envp) {
  ::setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  for (int number = 1; number < 32; ++number) ::signal(number, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (launch.netns >= 0 && ::setns(launch.netns, CLONE_NEWNET) != 0) ::_exit(126);
  if (::chdir(launch.cwd) != 0) ::_exit(126);
  // fd3 first: it may sit where the others go, but never on 0–2 (the node keeps those open).
  if (launch.fd3 >= 0) {
    if (launch.fd3 == 3) {
      ::fcntl(3, F_SETFD, 0);
    } else {
      const int moved = ::fcntl(launch.fd3, F_DUPFD_CLOEXEC, 64);
      const int in = ::fcntl(launch.in, F_DUPFD_CLOEXEC, 64);
      const int out = ::fcntl(launch.out, F_DUPFD_CLOEXEC, 64);
      const int err = ::fcntl(launch.err, F_DUPFD_CLOEXEC, 64);
      ::dup2(moved, 3);
      launch.in = in;
      launch.out = out;
      launch.err = err;
    }
  }
  ::dup2(launch.in, 0);
  ::dup2(launch.out, 1);
  ::dup2(launch.err, 2);
  ::syscall(SYS_close_range, launch.fd3 >= 0 ? 4U : 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */);
  ::execvpe(argv[0], argv, envp);
  ::_exit(127);
}

std::vector<std::string> base_environment(const std::vector<std::string>& more) {
  std::vector<std::string> env = {
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
      "LC_ALL=C"};
  env.insert(env.end(), more.begin(), more.end());
  return env;
}

// Reads what is there. False at the end of the stream.
bool drain(int fd, std::string& into, std::size_t max) {
  char buffer[16384];
  const auto got = ::read(fd, buffer, sizeof buffer);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  const auto room = max > into.size() ? max - into.size() : 0;
  into.append(buffer, std::min(room, static_cast<std::size_t>(got)));
  return true;
}

// The parent's side: feeds input, collects output, tells lines, waits.
class Supervisor {
 public:
  Supervisor(pid_t pid, Pipe in, Pipe out, Pipe err, const ProcessOptions& options)
      : pid_(pid),
        in_(std::move(in.write)),
        out_(std::move(out.read)),
        err_(std::move(err.read)),
        pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))),
        options_(options) {
    for (const int fd : {in_.get(), out_.get(), err_.get()}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
    if (options.input.empty()) in_.reset();
  }

  // False: the deadline passed and the group was killed.
  bool finish(ProcessResult& result) {
    const auto end = Steady::now() + options_.deadline;
    bool exited = false;
    while (!exited) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Steady::now()).count();
      if (left <= 0) {
        ::kill(-pid_, SIGKILL);
        wait_for_it();
        return false;
      }
      exited = step(static_cast<int>(left), result);
    }
    result.exit_code = wait_for_it();
    // A daemon that it left behind may hold the pipes: take what is there, and no more.
    while (out_.valid() && readable(out_.get()) &&
           drain(out_.get(), result.out, options_.output_max)) {
    }
    while (err_.valid() && readable(err_.get()) &&
           drain(err_.get(), result.err, options_.output_max)) {
    }
    tell_lines(result.err, true);
    return true;
  }

 private:
  static bool readable(int fd) {
    pollfd item{fd, POLLIN, 0};
    return ::poll(&item, 1, 0) == 1 && (item.revents & POLLIN) != 0;
  }

  bool step(int wait_ms, ProcessResult& result) {
    pollfd items[4] = {{pidfd_.get(), POLLIN, 0},
                       {out_.get(), POLLIN, 0},
                       {err_.get(), POLLIN, 0},
                       {in_.get(), POLLOUT, 0}};
    if (::poll(items, 4, wait_ms) <= 0) return false;
    if (items[1].revents != 0 && !drain(out_.get(), result.out, options_.output_max)) out_.reset();
    if (items[2].revents != 0) {
      if (!drain(err_.get(), result.err, options_.output_max)) err_.reset();
      tell_lines(result.err, false);
    }
    if (items[3].revents != 0) feed();
    return items[0].revents != 0;
  }

  void feed() {
    const auto sent =
        ::write(in_.get(), options_.input.data() + fed_, options_.input.size() - fed_);
    if (sent > 0) fed_ += static_cast<std::size_t>(sent);
    if ((sent < 0 && errno != EAGAIN && errno != EINTR) || fed_ == options_.input.size())
      in_.reset();
  }

  void tell_lines(const std::string& text, bool rest) {
    if (!options_.on_error_line) return;
    for (auto end = text.find('\n', told_); end != std::string::npos;
         end = text.find('\n', told_)) {
      options_.on_error_line(std::string_view(text).substr(told_, end - told_));
      told_ = end + 1;
    }
    if (rest && told_ < text.size()) options_.on_error_line(std::string_view(text).substr(told_));
  }

  int wait_for_it() const {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  pid_t pid_;
  UniqueFd in_, out_, err_, pidfd_;
  const ProcessOptions& options_;
  std::size_t fed_ = 0;
  std::size_t told_ = 0;
};

}  // namespace

Result<ProcessResult> run_process(const std::vector<std::string>& argv,
                                  const ProcessOptions& options) {
  ADL_TRY(in, make_pipe());
  ADL_TRY(out, make_pipe());
  ADL_TRY(err, make_pipe());
  Launch launch{argv,
                base_environment(options.env),
                options.cwd.c_str(),
                in.read.get(),
                out.write.get(),
                err.write.get(),
                options.fd3,
                options.network_namespace_fd};
  const auto args = pointers(launch.args);
  const auto env = pointers(launch.env);
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error(fmt::format("start {}", argv[0]), errno, ErrorKind::kExhausted);
  if (pid == 0) become(launch, args.data(), env.data());
  ::setpgid(pid, pid);
  in.read.reset();
  out.write.reset();
  err.write.reset();
  ProcessResult result;
  Supervisor supervisor(pid, std::move(in), std::move(out), std::move(err), options);
  if (!supervisor.finish(result)) {
    return Error(ErrorKind::kUnavailable, "tool_timeout",
                 fmt::format("'{}' did not end within {} ms and was killed", fmt::join(argv, " "),
                             options.deadline.count()));
  }
  if (result.exit_code == 127 && result.out.empty() && result.err.empty()) {
    return Error(ErrorKind::kInternal, "tool_missing",
                 fmt::format("program '{}' could not be started", argv[0]),
                 "install what scripts/setup installs");
  }
  return result;
}

Result<ProcessResult> run_checked(const std::vector<std::string>& argv,
                                  const ProcessOptions& options) {
  ADL_TRY(result, run_process(argv, options));
  if (result.exit_code == 0) return result;
  auto words = result.err.empty() ? result.out : result.err;
  if (words.size() > 600) words.erase(0, words.size() - 600);
  while (!words.empty() && words.back() == '\n') words.pop_back();
  return Error(ErrorKind::kInternal, "tool_failed",
               fmt::format("'{}' failed with exit code {}: {}", fmt::join(argv, " "),
                           result.exit_code, words));
}

}  // namespace autodl::runtime
