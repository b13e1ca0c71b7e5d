// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// exec, pty and tcp streams over a socketpair; client and stream share one loop.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "init/frame_conn.hpp"
#include "init/stream.hpp"

namespace autodl::init {
namespace {

constexpr Millis kTestTimeout{20'000};

class Streams : public testing::Test {
 protected:
  Streams() {
    signal(SIGPIPE, SIG_IGN);
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, nullptr);
    signals_ = UniqueFd(signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
    loop_.watch(signals_.get(), EPOLLIN, [this](std::uint32_t) {
      signalfd_siginfo info;
      while (read(signals_.get(), &info, sizeof info) > 0) {
      }
      children_.reap();
    });
    loop_.after(kTestTimeout, [this] {
      ADD_FAILURE() << "timed out; so far: " << output_;
      loop_.stop();
    });
  }

  // The client's end.
  UniqueFd connect_pair() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    server_end_ = UniqueFd(ends[1]);
    return UniqueFd(ends[0]);
  }

  void open_process(bool terminal) {
    UniqueFd client = connect_pair();
    stream_ = make_process_stream(host_, std::move(server_end_), terminal);
    client_ = std::make_unique<FrameConn>(
        loop_, std::move(client),
        FrameConn::Handlers{
            [this](const Frame& frame) { on_frame(frame); }, [this] { loop_.stop(); }, {}});
  }

  void on_frame(const Frame& frame) {
    const auto type = static_cast<InitFrame>(frame.type);
    if (type == InitFrame::kStdout) output_ += frame.payload;
    if (type == InitFrame::kStderr) errors_ += frame.payload;
    if (on_output_ && type == InitFrame::kStdout) on_output_();
    if (type != InitFrame::kExit && type != InitFrame::kError) return;
    last_ = frame.payload;
    loop_.stop();
  }

  void start(ExecStart start) { client_->send(InitFrame::kStart, to_json(start)); }
  static ExecStart line(std::string text) {
    ExecStart start;
    start.shell = std::move(text);
    return start;
  }

  EventLoop loop_;
  Children children_;
  UniqueFd signals_;
  UniqueFd server_end_;
  bool dropped_ = false;
  StreamHost host_{loop_,
                   children_,
                   {{"PATH", "/usr/bin:/bin"}, {"GREETING", "good day"}},
                   "/tmp",
                   [this](Stream*) {
                     loop_.later([this] {
                       stream_.reset();
                       dropped_ = true;
                       loop_.stop();
                     });
                   }};
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<FrameConn> client_;
  std::function<void()> on_output_;
  std::string output_;
  std::string errors_;
  std::string last_;
};

TEST_F(Streams, Exec_KeepsStreamsApartAndTellsTheExitCode) {
  open_process(false);
  start(line("echo \"$GREETING\"; pwd; echo bad >&2; exit 7"));
  loop_.run();
  EXPECT_EQ(output_, "good day\n/tmp\n");
  EXPECT_EQ(errors_, "bad\n");
  EXPECT_EQ(last_, R"({"exit_code":7})");
}

TEST_F(Streams, Exec_InputGoesThroughAndItsEndToo) {
  open_process(false);
  start(line("wc -c"));
  const std::string megabyte(1 << 20, 'x');
  for (int i = 0; i < 3; ++i) client_->send(InitFrame::kStdin, megabyte);
  client_->send(InitFrame::kStdinClosed, "");
  loop_.run();
  EXPECT_EQ(output_, "3145728\n");
}

TEST_F(Streams, Exec_LargeOutputComesWhole) {
  open_process(false);
  start(line("head -c 20000000 /dev/zero; exit 3"));
  loop_.run();
  EXPECT_EQ(output_.size(), 20'000'000u);
  EXPECT_EQ(last_, R"({"exit_code":3})");
}

TEST_F(Streams, Exec_UnknownCommandIsAnErrorAndNothingRan) {
  open_process(false);
  ExecStart start_message;
  start_message.argv = {"no-such-program"};
  start(start_message);
  loop_.run();
  EXPECT_EQ(parse_init_error(last_).value().code, "command_not_found");
}

TEST_F(Streams, Exec_FirstFrameMustBeStart) {
  open_process(false);
  client_->send(InitFrame::kStdin, "x");
  loop_.run();
  EXPECT_EQ(parse_init_error(last_).value().code, "bad_message");
}

TEST_F(Streams, Exec_SignalReachesTheProgram) {
  open_process(false);
  start(line("echo up; exec sleep 100"));
  on_output_ = [this] { client_->send(InitFrame::kSignal, signal_to_json(SIGTERM)); };
  loop_.run();
  EXPECT_EQ(last_, R"({"signal":15})");
}

TEST_F(Streams, Exec_ChildLeftBehindDoesNotHoldTheExit) {
  open_process(false);
  start(line("sleep 100 & echo $!; exit 0"));
  loop_.run();
  EXPECT_EQ(last_, R"({"exit_code":0})");
  kill(static_cast<pid_t>(std::stol(output_)), SIGKILL);
}

// The shell's trap writes into a pipe of this test's own: no file that another run could share.
TEST_F(Streams, Exec_ClientGoneHangsUpTheGroup) {
  open_process(false);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  start(line("exec 3>/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(writing.get()) +
             "; trap 'echo hup >&3; exit' HUP; sleep 100 3>&- & echo up; wait"));
  bool seen = false;
  on_output_ = [this, &seen] {
    if (!std::exchange(seen, true)) loop_.later([this] { client_.reset(); });
  };
  loop_.run();
  EXPECT_TRUE(dropped_);
  writing.reset();  // the shell's copy is the last: its end ends the read
  char text[8] = {};
  EXPECT_EQ(read(reading.get(), text, sizeof text), 4);
  EXPECT_STREQ(text, "hup\n");
}

TEST_F(Streams, Pty_IsATerminalOfTheAskedSizeThatIsResized) {
  open_process(true);
  ExecStart message = line("tty >/dev/null && echo \"tty $TERM\"; stty size; read x; stty size");
  message.cols = 91;
  message.rows = 33;
  message.term = "dumb";
  start(message);
  bool resized = false;
  on_output_ = [this, &resized] {
    if (resized || output_.find("33 91") == std::string::npos) return;
    resized = true;
    client_->send(InitFrame::kResize, to_json(WindowSize{70, 20}));
    client_->send(InitFrame::kStdin, "go\n");
  };
  loop_.run();
  EXPECT_NE(output_.find("tty dumb"), std::string::npos) << output_;
  EXPECT_NE(output_.find("20 70"), std::string::npos) << output_;
  EXPECT_EQ(last_, R"({"exit_code":0})");
}

TEST_F(Streams, Pty_ControlCInterrupts) {
  open_process(true);
  start(line("echo up; exec sleep 100"));
  on_output_ = [this] { client_->send(InitFrame::kStdin, "\x03"); };
  loop_.run();
  EXPECT_EQ(last_, R"({"signal":2})");
}

TEST_F(Streams, Tcp_CopiesBothWaysAndHalfCloses) {
  UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  socklen_t size = sizeof address;
  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  UniqueFd service;
  std::string heard;
  loop_.watch(listener.get(), EPOLLIN, [&](std::uint32_t) {
    service = UniqueFd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    loop_.watch(service.get(), EPOLLIN, [&](std::uint32_t) {
      char buffer[1000];
      const ssize_t got = recv(service.get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (got > 0) heard.append(buffer, static_cast<std::size_t>(got));
      if (got == 0) {  // the client has finished sending; the answer goes the other way
        loop_.forget(service.get());
        send(service.get(), "answer", 6, MSG_NOSIGNAL);
        service.reset();
      }
    });
  });
  const UniqueFd client = connect_pair();
  stream_ = make_tcp_stream(host_, std::move(server_end_), ntohs(address.sin_port));
  send(client.get(), "question", 8, MSG_NOSIGNAL);
  shutdown(client.get(), SHUT_WR);
  loop_.run();
  EXPECT_EQ(heard, "question");
  char buffer[100];
  EXPECT_EQ(recv(client.get(), buffer, sizeof buffer, MSG_DONTWAIT), 6);
  EXPECT_TRUE(dropped_);
}

TEST_F(Streams, Tcp_NobodyListens_Closes) {
  const UniqueFd client = connect_pair();
  stream_ = make_tcp_stream(host_, std::move(server_end_), 1);
  loop_.run();
  char byte = 0;
  EXPECT_EQ(recv(client.get(), &byte, 1, MSG_DONTWAIT), 0);
}

}  // namespace
}  // namespace autodl::init
