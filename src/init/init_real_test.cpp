// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// autodl-init as PID 1 on an empty root file system, with the real toolbox and its sshd. Needs
// root.
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/stat.h>

#include <chrono>

#include "init/testing/inside.hpp"

namespace autodl::init {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  char buffer[4096];
  while (pipe != nullptr && fgets(buffer, sizeof buffer, pipe) != nullptr) text += buffer;
  if (pipe != nullptr) pclose(pipe);
  return text;
}

struct World {
  World() {
    if (std::system(ADL_SOURCE_DIR "/scripts/build-toolbox /var/tmp/autodl-test-toolbox "
                                   "--programs " ADL_BUILD_DIR "/apps >/dev/null") == 0)
      toolbox = "/var/tmp/autodl-test-toolbox/current";
    std::string pattern = "/var/tmp/autodl-init-keys-XXXXXX";
    folder = mkdtemp(pattern.data());
    for (const char* name : {"host", "user"})
      output_of("ssh-keygen -q -t ed25519 -N '' -C " + std::string(name) + " -f " + folder + "/" +
                name);
  }
  ~World() { std::filesystem::remove_all(folder); }
  std::string text(const std::string& name) const {
    std::ifstream in(folder + "/" + name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string toolbox;
  std::string folder;
};

class InitReal : public testing::Test {
 protected:
  static void SetUpTestSuite() { world_ = new World; }
  static void TearDownTestSuite() { delete world_; }
  void SetUp() override {
    ASSERT_EQ(geteuid(), 0u) << "needs root";
    ASSERT_FALSE(world_->toolbox.empty()) << "scripts/build-toolbox failed";
    inside_ = std::make_unique<Inside>(world_->toolbox);
  }
  static InitSetup setup(std::optional<std::string> command = std::nullopt) {
    InitSetup setup;
    setup.run = RunId("01RUN");
    setup.instance = InstanceId("01INSTANCE");
    setup.name = "训练";
    setup.env = {{"SPACES", "a  b"}, {"QUOTES", "one\ntwo \"'$x"}};
    std::string key = world_->text("user.pub");
    key.erase(key.find_last_not_of('\n') + 1);
    setup.keys = {{key, {}}};
    setup.host_key = world_->text("host");
    setup.command = std::move(command);
    return setup;
  }
  struct Ran {
    std::string out;
    std::string err;
    std::string last;
  };
  static Ran read_out(Inlet& inlet) {
    Ran ran;
    for (;;) {
      const Frame frame = inlet.next();
      const auto type = static_cast<InitFrame>(frame.type);
      if (type == InitFrame::kStdout) ran.out += frame.payload;
      if (type == InitFrame::kStderr) ran.err += frame.payload;
      if (frame.type == 0 || type == InitFrame::kExit || type == InitFrame::kError) {
        ran.last = frame.payload;
        return ran;
      }
    }
  }
  Ran exec(const std::string& line) {
    Inlet inlet = inside_->open_stream({StreamKind::kExec, 0});
    ExecStart start;
    start.shell = line;
    inlet.send(InitFrame::kStart, to_json(start));
    return read_out(inlet);
  }
  // The real ssh through a forwarder that does what node and gateway do.
  std::string ssh(const std::string& arguments, const std::string& client = "203.0.113.9") {
    const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener.get(), 1), 0);
    getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
    std::thread forwarder([&] {
      const UniqueFd outer(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      const Inlet inner = inside_->open_stream({StreamKind::kSsh, 0}, client);
      forward(outer.get(), inner.fd());
    });
    const std::string result = output_of(
        "timeout 30 ssh -q -F none -i " + world_->folder +
        "/user -o BatchMode=yes "
        "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -p " +
        std::to_string(ntohs(address.sin_port)) + " root@127.0.0.1 " + arguments + "; echo rc=$?");
    forwarder.join();
    return result;
  }
  static void forward(int a, int b) {
    pollfd ends[2] = {{a, POLLIN, 0}, {b, POLLIN, 0}};
    while (poll(ends, 2, 30'000) > 0) {
      for (int i = 0; i < 2; ++i) {
        if (ends[i].revents == 0) continue;
        char buffer[32 << 10];
        const ssize_t got = recv(ends[i].fd, buffer, sizeof buffer, 0);
        if (got <= 0 ||
            send(ends[1 - i].fd, buffer, static_cast<std::size_t>(got), MSG_NOSIGNAL) != got)
          return;
      }
    }
  }

  static World* world_;
  std::unique_ptr<Inside> inside_;
};
World* InitReal::world_ = nullptr;

TEST_F(InitReal, Command_RunsInAnEmptyImageAndItsCodeIsKept) {
  EXPECT_TRUE(inside_->key_is_gone());
  Inlet control = inside_->begin(setup("echo out; echo err >&2; pwd; echo \"$QUOTES\"; exit 42"));
  EXPECT_EQ(control.expect(InitFrame::kEnded).payload, R"({"run":"01RUN","exit_code":42})");
  EXPECT_EQ(inside_->wait(), 42);
  EXPECT_EQ(inside_->exit_record(), R"({"run":"01RUN","exit_code":42})");
  EXPECT_EQ(inside_->log(), "out\nerr\n/root\none\ntwo \"'$x\n");
}

TEST_F(InitReal, Command_KilledBySignalIsTold) {
  Inlet control = inside_->begin(setup("kill -9 $$"));
  EXPECT_EQ(control.expect(InitFrame::kEnded).payload, R"({"run":"01RUN","signal":9})");
  EXPECT_EQ(inside_->wait(), 137);
}

TEST_F(InitReal, Command_WhoseFolderIsAbsentFailsWithAWord) {
  InitSetup wanted = setup("true");
  wanted.workdir = "/nowhere";
  Inlet control = inside_->begin(wanted);
  EXPECT_THAT(control.expect(InitFrame::kEnded).payload, HasSubstr("\"exit_code\":127"));
  inside_->wait();
  EXPECT_THAT(inside_->log(), HasSubstr("working folder '/nowhere'"));
}

TEST_F(InitReal, Command_StartsOnceHoweverOftenTheNodeDials) {
  const InitSetup wanted = setup("echo start >>/tmp/starts; exec sleep 1000");
  for (int i = 0; i < 4; ++i) {
    const Inlet control = inside_->begin(wanted);
    control.send(InitFrame::kGo, run_to_json(wanted.run));
  }
  EXPECT_EQ(exec("sleep 0.2; cat /tmp/starts").out, "start\n");
  InitSetup other = wanted;
  other.run = RunId("01OTHER");
  Inlet control = inside_->open_stream({StreamKind::kControl, 0});
  control.send(InitFrame::kSetup, to_json(other));
  EXPECT_THAT(control.expect(InitFrame::kError).payload, HasSubstr("other_run"));
}

TEST_F(InitReal, NothingIsLetInBeforeGo) {
  const Inlet control = inside_->begin(setup(), false);
  EXPECT_THAT(exec("true").last, HasSubstr("not_ready"));
  EXPECT_EQ(inside_->open_stream({StreamKind::kSsh, 0}).read_raw(), "");
}

TEST_F(InitReal, WrongHeaders_AreClosedWithoutAnAnswer) {
  const Inlet control = inside_->begin(setup());
  const std::string good = inside_->header({StreamKind::kSsh, 0});
  const auto answer = [&](const std::string& bytes) {
    const Inlet inlet(inside_->dial(kInitPort));
    inlet.send_raw(bytes);
    return inlet.read_raw();
  };
  EXPECT_THAT(answer(good), HasSubstr("SSH-2.0-"));
  EXPECT_EQ(answer(good), "");  // the nonce was used
  std::string forged = inside_->header({StreamKind::kSsh, 0});
  forged.back() = static_cast<char>(forged.back() ^ 1);
  EXPECT_EQ(answer(forged), "");
  EXPECT_EQ(answer("GET / HTTP/1.1\r\n\r\n"), "");
  EXPECT_EQ(answer("SSH-2.0-x\r\n"), "");
}

TEST_F(InitReal, IdleDiallersNeverKeepTheNodeOut) {
  std::vector<UniqueFd> idle;
  for (int i = 0; i < 200; ++i) idle.push_back(inside_->dial(kInitPort));
  const Inlet control = inside_->begin(setup());
  EXPECT_EQ(exec("echo in").out, "in\n");
}

TEST_F(InitReal, Exec_EnvironmentIsTheInstancesAndInitIsClosed) {
  const Inlet control = inside_->begin(setup());
  const Ran ran =
      exec("echo \"$SPACES|$PATH|$HOME\"; cat /proc/1/environ; ls /proc/self/fd | wc -l");
  EXPECT_THAT(ran.out,
              HasSubstr("a  b|/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:"
                        "/opt/autodl/bin|/root\n"));
  EXPECT_THAT(ran.err, HasSubstr("Permission denied"));
  EXPECT_THAT(ran.out, HasSubstr("\n4\n"));  // 0-2 and the folder that ls reads
}

TEST_F(InitReal, Pty_Works) {
  const Inlet control = inside_->begin(setup());
  Inlet inlet = inside_->open_stream({StreamKind::kPty, 0});
  ExecStart start;
  start.shell = "tty; stty size; read line; echo got $line";
  start.cols = 99;
  start.rows = 11;
  inlet.send(InitFrame::kStart, to_json(start));
  inlet.send(InitFrame::kStdin, "hello\n");
  const Ran ran = read_out(inlet);
  EXPECT_THAT(ran.out, HasSubstr("/dev/pts/"));
  EXPECT_THAT(ran.out, HasSubstr("11 99"));
  EXPECT_THAT(ran.out, HasSubstr("got hello"));
  EXPECT_EQ(ran.last, R"({"exit_code":0})");
}

TEST_F(InitReal, Ssh_SameEnvironmentRealClientAndExitCode) {
  const Inlet control = inside_->begin(setup());
  const std::string text = ssh("'echo \"$SPACES|$QUOTES|$SSH_CLIENT|$SSH_CONNECTION\"; exit 7'");
  EXPECT_THAT(text, HasSubstr("a  b|one\ntwo \"'$x|203.0.113.9 50122 20001|"
                              "203.0.113.9 50122 198.51.100.1 20001\n"));
  EXPECT_THAT(text, HasSubstr("rc=7"));
  EXPECT_EQ(exec("ls /run/autodl/ssh | wc -l").out, "0\n");  // no key file is left behind
}

TEST_F(InitReal, Ssh_AllowListsAreJudgedByTheRealClient) {
  InitSetup wanted = setup();
  wanted.keys[0].from = {"203.0.113.0/24"};
  const Inlet control = inside_->begin(wanted);
  EXPECT_THAT(ssh("echo in"), HasSubstr("in\nrc=0"));
  EXPECT_THAT(ssh("echo in", "203.0.114.9"), Not(HasSubstr("in\n")));
  EXPECT_THAT(ssh("echo in", "2001:db8::9"), Not(HasSubstr("in\n")));
  control.send(InitFrame::kKeys, keys_to_json({}));
  control.send(InitFrame::kPing, "x");
  EXPECT_THAT(ssh("echo in"), Not(HasSubstr("in\n")));
}

TEST_F(InitReal, Ssh_TenantsOwnKeysCountWithTheirFrom) {
  InitSetup wanted = setup();
  const std::string key = wanted.keys[0].public_key;
  wanted.keys.clear();
  const Inlet control = inside_->begin(wanted);
  EXPECT_THAT(ssh("echo in"), HasSubstr("rc=255"));
  exec("mkdir -p /root/.ssh; echo 'from=\"203.0.113.9\" " + key + "' >/root/.ssh/authorized_keys");
  EXPECT_THAT(ssh("echo in"), HasSubstr("in\nrc=0"));
  EXPECT_THAT(ssh("echo in", "127.0.0.1"), HasSubstr("rc=255"));  // the node's own address
}

TEST_F(InitReal, Tcp_ReachesAServiceInside) {
  const Inlet control = inside_->begin(setup());
  exec("nc -l -p 8000 -e echo served & sleep 0.3");
  EXPECT_EQ(inside_->open_stream({StreamKind::kTcp, 8000}).read_raw(), "served\n");
}

TEST_F(InitReal, Api_GpusInstanceAndShutdown) {
  Inlet control = inside_->begin(setup("exec sleep 1000"));
  const auto ask = [&](const std::string& request) {  // as a user who is not the instance's root
    return inside_->ask_api(request + " HTTP/1.1\r\n\r\n");
  };
  EXPECT_THAT(ask("POST /v1/shutdown"), HasSubstr("403"));
  EXPECT_THAT(ask("GET /v1/gpus"), HasSubstr(R"({"gpus":[]})"));
  control.send(InitFrame::kSamples, R"({"gpus":[{"index":0}]})");
  control.send(InitFrame::kPing, "x");
  control.expect(InitFrame::kPong);
  EXPECT_THAT(ask("GET /v1/gpus"), HasSubstr(R"({"gpus":[{"index":0}]})"));
  EXPECT_THAT(ask("GET /v1/instance"), HasSubstr(R"("id":"01INSTANCE")"));
  EXPECT_THAT(ask("GET /x"), HasSubstr("404"));
  EXPECT_THAT(exec("shutdown now").out, HasSubstr("shutting down"));
  EXPECT_EQ(control.expect(InitFrame::kShutdown).payload, R"({"run":"01RUN"})");
  control.send(InitFrame::kStop, to_json(InitStop{RunId("01RUN"), 10'000}));
  EXPECT_EQ(control.expect(InitFrame::kEnded).payload,
            R"({"run":"01RUN","signal":2,"shutdown":true})");
  inside_->wait();
}

TEST_F(InitReal, Stop_IsStaged) {
  Inlet control =
      inside_->begin(setup("trap 'echo int' INT; trap 'echo term; exit 5' TERM; : >/tmp/up; while "
                           ":; do sleep 0.05; done"));
  exec("until [ -e /tmp/up ]; do sleep 0.05; done");
  control.send(InitFrame::kStop, to_json(InitStop{RunId("01RUN"), 1'000}));
  EXPECT_THAT(control.expect(InitFrame::kEnded).payload, HasSubstr("\"exit_code\":5"));
  EXPECT_EQ(inside_->wait(), 5);
  EXPECT_THAT(inside_->log(), HasSubstr("int\n"));
  EXPECT_THAT(inside_->log(), HasSubstr("term\n"));
}

TEST_F(InitReal, Stop_KillsWhatIgnoresEverything) {
  Inlet control =
      inside_->begin(setup("trap '' INT TERM HUP; : >/tmp/up; while :; do sleep 0.05; done"));
  exec("until [ -e /tmp/up ]; do sleep 0.05; done");
  control.send(InitFrame::kStop, to_json(InitStop{RunId("01RUN"), 400}));
  EXPECT_EQ(control.expect(InitFrame::kEnded).payload, R"({"run":"01RUN","signal":9})");
  inside_->wait();
}

TEST_F(InitReal, Stop_WithoutCommandIsPrompt) {
  Inlet control = inside_->begin(setup());
  control.send(InitFrame::kStop, to_json(InitStop{RunId("01RUN"), 60'000}));
  EXPECT_EQ(control.expect(InitFrame::kEnded).payload, R"({"run":"01RUN","exit_code":0})");
  EXPECT_EQ(inside_->wait(), 0);
}

TEST_F(InitReal, Stop_EndsIdleShellsWithoutWaiting) {
  Inlet control = inside_->begin(setup());
  Inlet terminal = inside_->open_stream({StreamKind::kPty, 0});
  ExecStart start;
  start.argv = {"sh", "-i"};
  terminal.send(InitFrame::kStart, to_json(start));
  terminal.expect(InitFrame::kStdout);  // the prompt
  const auto began = std::chrono::steady_clock::now();
  control.send(InitFrame::kStop, to_json(InitStop{RunId("01RUN"), 60'000}));
  EXPECT_EQ(control.expect(InitFrame::kEnded).payload, R"({"run":"01RUN","exit_code":0})");
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
}

TEST_F(InitReal, Stop_HangUpDoesNotCutOffWhoSavesOnTerm) {
  Inlet control = inside_->begin(setup());
  // Its output goes nowhere: the pipes of this exec have no reader once it is over.
  exec(
      "sh -c \"trap 'sleep 0.3; echo saved >/run/autodl/boot/saved; exit' TERM; : >/tmp/up; "
      "while :; do sleep 0.05; done\" >/dev/null 2>&1 & until [ -e /tmp/up ]; do sleep 0.05; done");
  control.send(InitFrame::kStop, to_json(InitStop{RunId("01RUN"), 20'000}));
  control.expect(InitFrame::kEnded);
  inside_->wait();
  EXPECT_EQ(inside_->boot_file("saved"), "saved\n");
}

TEST_F(InitReal, Orphans_AreReaped) {
  const Inlet control = inside_->begin(setup());
  exec("for i in 1 2 3 4 5; do (sh -c 'exit 0' & ) ; done; sleep 0.2");
  EXPECT_EQ(exec("ps -o stat | grep -c Z").out, "0\n");
}

}  // namespace
}  // namespace autodl::init
