// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// exec and pty streams.
//
//   wait for start ──▶ running ──▶ exited: drain what is in the pipes, send exit, finish
//                └─ could not start: send error, finish         (client gone at any time: HUP)
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>

#include "init/frame_conn.hpp"
#include "init/stream.hpp"

namespace autodl::init {
namespace {

constexpr std::size_t kStdinBytesMax = 256 << 10;
constexpr std::size_t kDrainBytesMax = 2 << 20;
constexpr char kEndOfInput = 4;  // ^D, what closing its input means on a terminal

struct Output {
  UniqueFd fd;
  InitFrame type = InitFrame::kStdout;
  bool watched = false;  // not while the client takes no more
};

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

Pipe make_pipe() {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

void set_nonblocking(int fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

class ProcessStream final : public Stream {
 public:
  ProcessStream(StreamHost& host, UniqueFd socket, bool terminal)
      : host_(host),
        terminal_(terminal),
        conn_(host.loop, std::move(socket),
              {[this](const Frame& frame) { on_frame(frame); }, [this] { on_gone(); },
               [this] { watch_outputs(); }}) {}

  ~ProcessStream() override {
    close_input();
    for (Output& output : outputs_)
      if (output.fd.valid()) host_.loop.forget(output.fd.get());
    if (pid_ > 0) {
      host_.children.forget(pid_);
      kill(-pid_, SIGHUP);
    }
  }

 private:
  void on_frame(const Frame& frame) {
    const auto type = static_cast<InitFrame>(frame.type);
    if (type == InitFrame::kStart && pid_ == 0 && !ended_) return start(frame.payload);
    if (pid_ == 0 && !ended_) return refuse("bad_message", "the first frame must be start");
    if (ended_) return;
    switch (type) {
      case InitFrame::kStdin:
        if (!input_.valid() || input_closing_) return;
        input_bytes_ += frame.payload;
        return write_input();
      case InitFrame::kStdinClosed:
        if (terminal_ && input_.valid()) input_bytes_ += kEndOfInput;
        if (!terminal_) input_closing_ = true;
        return write_input();
      case InitFrame::kResize: return resize(frame.payload);
      case InitFrame::kSignal: {
        const auto number = parse_signal(frame.payload);
        if (number.ok()) kill(-pid_, number.value());
        return;
      }
      default: return;  // a newer peer's frame changes nothing
    }
  }

  void refuse(std::string code, std::string message) {
    ended_ = true;
    conn_.send(InitFrame::kError, to_json(InitError{std::move(code), std::move(message)}));
    conn_.finish();
  }

  void start(const std::string& payload) {
    const auto parsed = parse_exec_start(payload);
    if (!parsed.ok()) return refuse(parsed.error().code(), parsed.error().message());
    const ExecStart& wanted = parsed.value();
    ProcessSpec spec;
    spec.argv = wanted.argv;
    if (!wanted.shell.empty()) spec.argv = {shell_path(), "-c", wanted.shell};
    spec.env = host_.environment;
    for (const auto& [name, value] : wanted.env) spec.env[name] = value;
    if (terminal_) spec.env["TERM"] = wanted.term;
    spec.cwd = wanted.cwd.empty() ? host_.workdir : wanted.cwd;
    const auto pid =
        terminal_ ? start_on_terminal(spec, {wanted.cols, wanted.rows}) : start_on_pipes(spec);
    if (!pid.ok()) return refuse(pid.error().code(), pid.error().message());
    pid_ = pid.value();
    host_.children.on_exit(pid_, [this](ExitStatus status) { on_exit(status); });
    set_nonblocking(input_.get());
    for (Output& output : outputs_)
      if (output.fd.valid()) set_nonblocking(output.fd.get());
    watch_outputs();
  }

  Result<pid_t> start_on_pipes(ProcessSpec& spec) {
    Pipe in = make_pipe();
    Pipe out = make_pipe();
    Pipe err = make_pipe();
    if (!in.read_end.valid() || !out.read_end.valid() || !err.read_end.valid())
      return errno_error("make pipes", errno, ErrorKind::kExhausted);
    spec.stdin_fd = in.read_end.get();
    spec.stdout_fd = out.write_end.get();
    spec.stderr_fd = err.write_end.get();
    auto pid = start_process(spec);
    if (!pid.ok()) return pid;
    input_ = std::move(in.write_end);
    outputs_[0] = {std::move(out.read_end), InitFrame::kStdout, false};
    outputs_[1] = {std::move(err.read_end), InitFrame::kStderr, false};
    return pid;
  }

  Result<pid_t> start_on_terminal(ProcessSpec& spec, WindowSize size) {
    UniqueFd master(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
    int unlock = 0;
    if (!master.valid() || ioctl(master.get(), TIOCSPTLCK, &unlock) != 0)
      return errno_error("open a terminal", errno, ErrorKind::kExhausted);
    // By the master's descriptor: no path of the image is looked up.
    const UniqueFd slave(ioctl(master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!slave.valid()) return errno_error("open a terminal", errno, ErrorKind::kExhausted);
    set_window(master.get(), size);
    spec.stdin_fd = spec.stdout_fd = spec.stderr_fd = slave.get();
    spec.terminal = true;
    auto pid = start_process(spec);
    if (!pid.ok()) return pid;
    input_ = UniqueFd(fcntl(master.get(), F_DUPFD_CLOEXEC, 3));
    outputs_[0] = {std::move(master), InitFrame::kStdout, false};
    return pid;
  }

  static void set_window(int fd, WindowSize size) {
    winsize window{};
    window.ws_col = static_cast<unsigned short>(size.cols);
    window.ws_row = static_cast<unsigned short>(size.rows);
    ioctl(fd, TIOCSWINSZ, &window);
  }

  void resize(const std::string& payload) {
    const auto size = parse_window_size(payload);
    if (size.ok() && terminal_ && input_.valid()) set_window(input_.get(), size.value());
  }

  // ---- to the program

  void write_input() {
    if (!input_.valid()) return;
    host_.loop.forget(input_.get());
    while (!input_bytes_.empty()) {
      const ssize_t wrote = write(input_.get(), input_bytes_.data(), input_bytes_.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0 && errno == EAGAIN) break;
      if (wrote < 0) {  // nobody reads it any more
        close_input();
        return conn_.pause(false);
      }
      input_bytes_.erase(0, static_cast<std::size_t>(wrote));
    }
    if (!input_bytes_.empty())
      host_.loop.watch(input_.get(), EPOLLOUT, [this](std::uint32_t) { write_input(); });
    else if (input_closing_)
      close_input();
    conn_.pause(input_bytes_.size() > kStdinBytesMax);
  }

  void close_input() {
    if (input_.valid()) host_.loop.forget(input_.get());
    input_.reset();
    input_bytes_.clear();
  }

  // ---- from the program

  void watch_outputs() {
    if (ended_) return;
    for (Output& output : outputs_) {
      if (!output.fd.valid() || output.watched) continue;
      output.watched = true;
      host_.loop.watch(output.fd.get(), EPOLLIN,
                       [this, &output](std::uint32_t) { on_output(output); });
    }
  }

  void on_output(Output& output) {
    if (!conn_.full()) {
      pump(output);
      return;
    }
    output.watched = false;  // until the client has taken it: on_drained watches again
    host_.loop.forget(output.fd.get());
  }

  // Bytes moved; 0 at the end of the output or where there is nothing now.
  std::size_t pump(Output& output) {
    std::array<char, 32 << 10> buffer;
    const ssize_t got = read(output.fd.get(), buffer.data(), buffer.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (got <= 0) {  // EIO: the terminal's last user has gone
      host_.loop.forget(output.fd.get());
      output.fd.reset();
      return 0;
    }
    conn_.send(output.type, {buffer.data(), static_cast<std::size_t>(got)});
    return static_cast<std::size_t>(got);
  }

  void on_exit(ExitStatus status) {
    // What the program wrote is in the pipes now; a child that it left behind may go on writing, so
    // there is a limit, and nobody waits for that child.
    for (Output& output : outputs_) {
      for (std::size_t drained = 0; output.fd.valid() && drained < kDrainBytesMax;) {
        const std::size_t moved = pump(output);
        if (moved == 0) break;
        drained += moved;
      }
      if (output.fd.valid()) host_.loop.forget(output.fd.get());
      output.fd.reset();
    }
    close_input();
    pid_ = 0;
    ended_ = true;
    conn_.send(InitFrame::kExit, to_json(status));
    conn_.finish();
  }

  void on_gone() { host_.drop(this); }

  StreamHost& host_;
  bool terminal_;
  pid_t pid_ = 0;
  bool ended_ = false;  // error or exit has been sent
  UniqueFd input_;
  std::string input_bytes_;
  bool input_closing_ = false;
  std::array<Output, 2> outputs_;
  FrameConn conn_;
};

}  // namespace

std::unique_ptr<Stream> make_process_stream(StreamHost& host, UniqueFd socket, bool terminal) {
  return std::make_unique<ProcessStream>(host, std::move(socket), terminal);
}

}  // namespace autodl::init
