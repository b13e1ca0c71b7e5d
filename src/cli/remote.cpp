// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/remote.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "http/url.hpp"
#include "wire/frames.hpp"

namespace autodl::cli {

namespace {

enum : std::uint8_t {
  kStart = 1,
  kStdin,
  kStdinClosed,
  kStdout,
  kStderr,
  kResize,
  kSignal,
  kExit,
  kFailed
};

Status write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::write(fd, bytes.data(), bytes.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno_error("write", errno, ErrorKind::kUnavailable);
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

json::object window_size() {
  winsize size{};
  if (::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    size.ws_col = 80;
    size.ws_row = 24;
  }
  return {{"cols", size.ws_col}, {"rows", size.ws_row}};
}

// The terminal in raw mode for the life of the object.
class RawTerminal {
 public:
  explicit RawTerminal(bool wanted) : raw_(wanted && ::tcgetattr(STDIN_FILENO, &kept_) == 0) {
    if (!raw_) return;
    auto settings = kept_;
    ::cfmakeraw(&settings);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &settings);
  }
  ~RawTerminal() {
    if (raw_) ::tcsetattr(STDIN_FILENO, TCSANOW, &kept_);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  termios kept_{};
  bool raw_;
};

Result<int> exit_of(const Frame& frame) {
  boost::system::error_code failed;
  const auto parsed = json::parse(frame.payload, failed);
  if (failed || !parsed.is_object())
    return Error(ErrorKind::kUnavailable, "bad_answer", "the end of the command was not told");
  const auto& object = parsed.get_object();
  if (frame.type == kFailed) {
    const auto* text = object.if_contains("message");
    const auto* code = object.if_contains("code");
    if (text != nullptr && text->is_string())
      fmt::print(stderr, "autodl: {}\n", std::string(text->get_string()));
    return code != nullptr && code->is_string() && code->get_string() == "command_not_found" ? 127
                                                                                             : 126;
  }
  const auto* code = object.if_contains("exit_code");
  if (code != nullptr && code->is_int64()) return static_cast<int>(code->get_int64());
  const auto* killed = object.if_contains("signal");
  if (killed != nullptr && killed->is_int64()) return 128 + static_cast<int>(killed->get_int64());
  return Error(ErrorKind::kUnavailable, "bad_answer", "the end of the command was not told");
}

constexpr std::size_t kUnsentMax = 256 << 10;
constexpr int kInterruptsMax = 3;  // ^C is the remote command's; who types it thrice means us

// Carries bytes until the exit frame.
class ExecSession {
 public:
  ExecSession(http::Upgraded connection) : connection_(std::move(connection)) {
    reader_.put(connection_.leftover);
    sigset_t watched;
    ::sigemptyset(&watched);
    for (const int number : {SIGWINCH, SIGINT, SIGTERM, SIGHUP, SIGQUIT})
      ::sigaddset(&watched, number);
    ::sigprocmask(SIG_BLOCK, &watched, nullptr);
    signals_.reset(::signalfd(-1, &watched, SFD_CLOEXEC));
  }

  // Queued, and sent as far as the connection takes it. Waiting here could wait for ever: a program
  // that copies its input to its output reads on only once its output is taken.
  Status send(std::uint8_t type, std::string_view payload) {
    unsent_ += encode_frame(type, payload);
    return send_rest();
  }

  Result<int> run() {
    for (;;) {
      ADL_TRY(ended, take_frames());
      if (ended.has_value()) return *ended;
      const bool room = unsent_.size() < kUnsentMax;
      const auto wanted = static_cast<short>(unsent_.empty() ? POLLIN : POLLIN | POLLOUT);
      pollfd fds[] = {{connection_.socket.get(), wanted, 0},
                      {signals_.get(), POLLIN, 0},
                      {stdin_open_ && room ? STDIN_FILENO : -1, POLLIN, 0}};
      if (::poll(fds, 3, -1) < 0) {
        if (errno == EINTR) continue;
        return errno_error("poll", errno);
      }
      if ((fds[0].revents & POLLOUT) != 0) ADL_TRY_STATUS(send_rest());
      if (fds[2].revents != 0) {
        ADL_TRY_STATUS(forward_stdin());
      }
      if ((fds[1].revents & POLLIN) != 0) {
        ADL_TRY_STATUS(forward_signal());
      }
      if (interrupts_ >= kInterruptsMax) return 130;
      if ((fds[0].revents & ~POLLOUT) != 0) {
        char chunk[64 << 10];
        const auto got = ::recv(connection_.socket.get(), chunk, sizeof chunk, 0);
        if (got <= 0)
          return Error(ErrorKind::kUnavailable, "connection_lost",
                       "the connection to the command was lost; it may still run");
        reader_.put({chunk, static_cast<std::size_t>(got)});
      }
    }
  }

 private:
  Result<std::optional<int>> take_frames() {
    for (;;) {
      ADL_TRY(frame, reader_.next());
      if (!frame.has_value()) return std::optional<int>{};
      if (frame->type == kStdout) {
        ADL_TRY_STATUS(write_all(STDOUT_FILENO, frame->payload));
      }
      if (frame->type == kStderr) {
        ADL_TRY_STATUS(write_all(STDERR_FILENO, frame->payload));
      }
      if (frame->type == kExit || frame->type == kFailed) {
        ADL_TRY(code, exit_of(*frame));
        return std::optional<int>(code);
      }
    }
  }

  Status send_rest() {
    while (!unsent_.empty()) {
      const auto sent = ::send(connection_.socket.get(), unsent_.data(), unsent_.size(),
                               MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && errno == EAGAIN) return {};
      // What the other side said before it went away is still to be read.
      if (sent < 0) return unsent_.clear(), Status{};
      unsent_.erase(0, static_cast<std::size_t>(sent));
    }
    return {};
  }

  Status forward_stdin() {
    char chunk[32 << 10];
    const auto got = ::read(STDIN_FILENO, chunk, sizeof chunk);
    if (got > 0) return send(kStdin, {chunk, static_cast<std::size_t>(got)});
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return {};
    stdin_open_ = false;
    return send(kStdinClosed, "");
  }

  Status forward_signal() {
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return {};
    if (info.ssi_signo == SIGINT) ++interrupts_;
    if (info.ssi_signo == SIGWINCH) return send(kResize, json::serialize(window_size()));
    const char* name = info.ssi_signo == SIGINT    ? "INT"
                       : info.ssi_signo == SIGQUIT ? "QUIT"
                       : info.ssi_signo == SIGHUP  ? "HUP"
                                                   : "TERM";
    return send(kSignal, json::serialize(json::object{{"name", name}}));
  }

  http::Upgraded connection_;
  FrameReader reader_;
  UniqueFd signals_;
  std::string unsent_;
  int interrupts_ = 0;
  bool stdin_open_ = true;
};

}  // namespace

Result<int> exec_remote(Api& api, const std::string& instance, const std::vector<std::string>& argv,
                        const ExecOptions& options) {
  ADL_TRY(connection, api.upgrade(fmt::format("/api/v1/instances/{}/exec?pty={}",
                                              http::percent_encode(instance), options.pty ? 1 : 0),
                                  "autodl-frames"));
  json::object start{{"argv", json::array(argv.begin(), argv.end())}};
  if (!options.cwd.empty()) start["cwd"] = options.cwd;
  if (options.pty) {
    for (auto& [key, value] : window_size()) start[key] = value;
    const char* term = ::getenv("TERM");
    start["term"] = term != nullptr ? term : "xterm-256color";
  }
  ::signal(SIGPIPE, SIG_IGN);
  ExecSession session(std::move(connection));
  ADL_TRY_STATUS(session.send(kStart, json::serialize(start)));
  const RawTerminal raw(options.pty);
  return session.run();
}

Result<int> ssh_remote(const json::object& instance, const std::string& identity,
                       const std::vector<std::string>& arguments) {
  const auto* ssh = instance.if_contains("ssh");
  if (ssh == nullptr || !ssh->is_object())
    return Error(ErrorKind::kConflict, "no_endpoint", "the instance has no SSH endpoint yet",
                 "start it, and look with: autodl show");
  const auto& endpoint = ssh->get_object();
  const std::string host(endpoint.at("host").as_string());
  const auto port = endpoint.at("port").to_number<int>();
  char known[] = "/tmp/autodl-known-XXXXXX";
  UniqueFd fd(::mkstemp(known));
  if (!fd.valid()) return errno_error("make a known_hosts file", errno);
  const auto line =
      fmt::format("[{}]:{} {}\n", host, port, std::string(endpoint.at("host_key").as_string()));
  ADL_TRY_STATUS(write_all(fd.get(), line));
  std::vector<std::string> argv = {"ssh",
                                   "-p",
                                   std::to_string(port),
                                   "-o",
                                   fmt::format("UserKnownHostsFile={}", known),
                                   "-o",
                                   "StrictHostKeyChecking=yes",
                                   "-o",
                                   "LogLevel=ERROR"};
  if (!identity.empty()) argv.insert(argv.end(), {"-i", identity, "-o", "IdentitiesOnly=yes"});
  argv.push_back("root@" + host);
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  std::vector<char*> raw;
  for (auto& word : argv) raw.push_back(word.data());
  raw.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execvp("ssh", raw.data());
    fmt::print(stderr, "autodl: no 'ssh' on PATH; install openssh-client\n");
    ::_exit(127);
  }
  int status = 0;
  while (pid > 0 && ::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  ::unlink(known);
  if (pid < 0) return errno_error("start ssh", errno);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace autodl::cli
