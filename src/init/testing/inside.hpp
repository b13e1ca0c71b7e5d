// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Inside: autodl-init as PID 1 in namespaces of its own on a root file system that holds nothing
// but the toolbox; and the node's side of its connections. For the tests that need root.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <arpa/inet.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/random.hpp"
#include "base/unique_fd.hpp"
#include "wire/frames.hpp"
#include "wire/init_messages.hpp"
#include "wire/proxy_v2.hpp"

namespace autodl::init {

// One framed or raw connection into the instance, blocking, 30 s at most per wait.
class Inlet {
 public:
  explicit Inlet(UniqueFd socket) : socket_(std::move(socket)) {
    const timeval limit{30, 0};
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  void send_raw(std::string_view bytes) const {
    ASSERT_EQ(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void send(InitFrame type, std::string_view payload) const { send_raw(init_frame(type, payload)); }
  // The next frame; type 0 where the peer has closed.
  Frame next() {
    for (;;) {
      auto frame = frames_.next();
      if (!frame.ok()) return {};
      if (frame.value()) return std::move(*frame.value());
      const std::string bytes = read_raw();
      if (bytes.empty()) return {};
      frames_.put(bytes);
    }
  }
  Frame expect(InitFrame type) {
    const Frame frame = next();
    EXPECT_EQ(int{frame.type}, static_cast<int>(type)) << frame.payload;
    return frame;
  }
  // Some bytes; empty where the peer has closed.
  std::string read_raw() const {
    char buffer[64 << 10];
    const ssize_t got = recv(socket_.get(), buffer, sizeof buffer, 0);
    return got > 0 ? std::string(buffer, static_cast<std::size_t>(got)) : std::string();
  }
  int fd() const { return socket_.get(); }

 private:
  UniqueFd socket_;
  FrameReader frames_;
};

class Inside {
 public:
  explicit Inside(const std::string& toolbox) {
    std::string pattern = "/var/tmp/autodl-init-real-XXXXXX";
    base_ = mkdtemp(pattern.data());
    std::filesystem::create_directories(base_ + "/root");
    std::filesystem::create_directories(base_ + "/boot");
    std::filesystem::permissions(base_, std::filesystem::perms(0755));
    std::ofstream(base_ + "/boot/key") << key_;
    for (const char* path : {"/boot", "/boot/key"})
      EXPECT_EQ(chown((base_ + path).c_str(), kUid, kUid), 0);
    start(toolbox);
  }
  ~Inside() {
    if (!reaped_) {
      kill(pid_, SIGKILL);  // PID 1 goes with it
      wait();
    }
    std::filesystem::remove_all(base_);
  }

  // The exit code of PID 1.
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    reaped_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string boot_file(const std::string& name) const { return text_of(base_ + "/boot/" + name); }
  std::string exit_record() const { return boot_file("exit.json"); }
  std::string log() const { return text_of(base_ + "/log"); }
  bool key_is_gone() const { return !std::filesystem::exists(base_ + "/boot/key"); }
  const std::string& key() const { return key_; }

  // One request to api.sock, by a process that is no user of the instance's.
  std::string ask_api(const std::string& request) const {
    const std::string path = "/proc/" + std::to_string(init_pid()) + "/root/run/autodl/api.sock";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const Inlet inlet(UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)));
    if (connect(inlet.fd(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return "";
    inlet.send_raw(request);
    std::string answer;
    for (std::string some; !(some = inlet.read_raw()).empty();) answer += some;
    return answer;
  }

  // A socket connected to a port inside; invalid where nobody listens.
  UniqueFd dial(std::uint16_t port) const {
    UniqueFd result;
    std::thread([&] {  // a thread of its own changes its network namespace and ends
      const UniqueFd ns(
          open(("/proc/" + std::to_string(init_pid()) + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC));
      if (!ns.valid() || setns(ns.get(), CLONE_NEWNET) != 0) return;
      UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(port);
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
        result = std::move(fd);
    })
        .join();
    return result;
  }
  std::string header(const StreamTarget& target, std::string client = "203.0.113.9") {
    return build_proxy_header(
               key_,
               {target, {std::move(client), 50122}, {"198.51.100.1", 20001}, make_nonce(random_)})
        .value();
  }
  Inlet open_stream(const StreamTarget& target, std::string client = "203.0.113.9") {
    Inlet inlet(dial(kInitPort));
    inlet.send_raw(header(target, std::move(client)));
    return inlet;
  }
  // Control, set up and (with go) running.
  Inlet begin(const InitSetup& setup, bool go = true) {
    Inlet control = open_stream({StreamKind::kControl, 0});
    control.send(InitFrame::kSetup, to_json(setup));
    const Frame ready = control.expect(InitFrame::kReady);
    EXPECT_NE(ready.payload.find("SSH-2.0-OpenSSH"), std::string::npos) << ready.payload;
    if (go) control.send(InitFrame::kGo, run_to_json(setup.run));
    return control;
  }

 private:
  static constexpr uid_t kUid = 200'000;

  static std::string text_of(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  void start(const std::string& toolbox) {
    const std::string script =
        R"(set -e; R=$1/root; mount --make-rprivate /; mount -t tmpfs -o mode=755,size=64m tmpfs $R
mkdir -p $R/dev $R/proc $R/run $R/opt/autodl; mount -t proc proc $R/proc
mount -t tmpfs -o mode=755 tmpfs $R/dev; mount -t tmpfs -o mode=755 tmpfs $R/run
mkdir -p $R/dev/pts $R/run/autodl/boot
for d in null zero urandom random; do : >$R/dev/$d; mount --bind /dev/$d $R/dev/$d; done
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts $R/dev/pts; ln -s pts/ptmx $R/dev/ptmx
mount --bind $1/boot $R/run/autodl/boot; mount --bind $2 $R/opt/autodl; ip link set lo up
echo up >$1/boot/up; exec env -i /usr/sbin/chroot $R /opt/autodl/sbin/autodl-init)";
    int ready[2];
    int go[2];
    ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
    ASSERT_EQ(pipe2(go, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) become_inside(script, toolbox, ready[1], go[0]);
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    for (const char* map : {"uid_map", "gid_map"})
      std::ofstream("/proc/" + std::to_string(pid_) + "/" + map) << "0 200000 65536\n";
    ASSERT_EQ(write(go[1], "x", 1), 1);
    for (const int fd : {ready[0], ready[1], go[0], go[1]}) close(fd);
    // init's listener is the event to wait for; nothing tells it across the namespaces.
    for (int i = 0; i < 2000 && init_pid() == 0; ++i) usleep(5'000);
    for (int i = 0; i < 1000; ++i) {
      if (dial(kInitPort).valid()) return;
      usleep(5'000);
    }
    ADD_FAILURE() << "autodl-init does not listen: " << log();
  }

  // In the child: new namespaces, mapped by the parent; then PID 1, which dies with this process.
  [[noreturn]] void become_inside(const std::string& script, const std::string& toolbox, int ready,
                                  int go) {
    char byte = 'x';
    const int log = open((base_ + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC) != 0 ||
        write(ready, &byte, 1) != 1 || read(go, &byte, 1) != 1 || setresgid(0, 0, 0) != 0 ||
        setresuid(0, 0, 0) != 0)
      _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE);  // as in an instance
    const pid_t first = fork();
    if (first == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      execlp("sh", "sh", "-c", script.c_str(), "sh", base_.c_str(), toolbox.c_str(), nullptr);
      _exit(127);
    }
    int status = 0;
    waitpid(first, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }

  pid_t init_pid() const {
    std::ifstream children("/proc/" + std::to_string(pid_) + "/task/" + std::to_string(pid_) +
                           "/children");
    pid_t child = 0;
    children >> child;
    return child;
  }

  SeededRandom random_{11};
  std::string key_ = std::string(kRunKeyBytes, 'K');
  std::string base_;
  pid_t pid_ = 0;
  bool reaped_ = false;
};

}  // namespace autodl::init
