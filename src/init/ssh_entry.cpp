// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "init/ssh_entry.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "init/access_keys.hpp"
#include "init/files.hpp"

namespace autodl::init {
namespace {

constexpr const char* kSshd = "/opt/autodl/sbin/sshd";
constexpr const char* kSshdConfig = "/opt/autodl/etc/sshd_config";
constexpr Millis kTestTimeout{15'000};
constexpr std::size_t kBannerBytesMax = 255;

// "ADDRESS PORT" of the socket's other end, as the shim will see it; empty where it is none.
std::string peer_of(int fd) {
  sockaddr_in peer{};
  socklen_t size = sizeof peer;
  char text[INET_ADDRSTRLEN] = "";
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0 ||
      peer.sin_family != AF_INET ||
      inet_ntop(AF_INET, &peer.sin_addr, text, sizeof text) == nullptr)
    return {};
  return fmt::format("{} {}", text, ntohs(peer.sin_port));
}

}  // namespace

Status SshEntry::prepare(const InitSetup& setup) {
  ADL_TRY_STATUS(ensure_folder("/run/sshd", 0755));  // sshd's compiled-in privilege separation
  ADL_TRY_STATUS(ensure_folder(run_dir_ + "/ssh", 0755));
  set_keys(setup.keys);
  return write_file_atomic(run_dir_ + "/ssh_host_ed25519_key", setup.host_key, 0600);
}

Result<pid_t> SshEntry::start_sshd(int socket, int stderr_fd, const std::string& keys_file,
                                   std::string peer, std::string connection) {
  ProcessSpec spec;
  spec.argv = {kSshd, "-i",
               "-f",  kSshdConfig,
               "-o",  "HostKey=" + run_dir_ + "/ssh_host_ed25519_key",
               "-o",  "AuthorizedKeysFile=" + keys_file + " .ssh/authorized_keys"};
  if (!connection.empty()) {
    spec.argv.emplace_back("-o");
    spec.argv.push_back(fmt::format("SetEnv=AUTODL_SSH_CONNECTION=\"{}\"", connection));
  }
  spec.env = {{"PATH", "/opt/autodl/bin:/usr/bin:/bin"}};
  if (!peer.empty()) spec.env["AUTODL_SSH_PEER"] = fmt::format("{} {}", peer, connection);
  spec.cwd = "/";
  spec.stdin_fd = socket;
  spec.stdout_fd = socket;
  spec.stderr_fd = stderr_fd;
  return start_process(spec);
}

// One self-test: sshd's banner on a socketpair, its complaints on a pipe.
struct SshEntry::Test {
  UniqueFd ours;
  UniqueFd complaints;
  std::string text;
  EventLoop::TimerId timer = 0;
  pid_t pid = 0;
  TestDone done;
};

void SshEntry::self_test(TestDone done) {
  const auto failed = [](std::string why) {
    return Error(ErrorKind::kUnavailable, "ssh_self_test_failed",
                 "the instance's SSH server gives no banner: " + std::move(why),
                 "start it again; if it stays so, the image's files may be damaged");
  };
  int pair[2];
  int pipe_ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return done(errno_error("make a socketpair", errno));
  // Shared by the handlers below; gone with the last of them.
  auto test = std::make_shared<Test>();
  test->ours = UniqueFd(pair[0]);
  const UniqueFd theirs(pair[1]);
  if (pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) != 0) return done(errno_error("make a pipe", errno));
  test->complaints = UniqueFd(pipe_ends[0]);
  const UniqueFd their_stderr(pipe_ends[1]);
  auto pid = start_sshd(theirs.get(), their_stderr.get(), "none", "", "");
  if (!pid.ok()) return done(failed(pid.error().message()));
  test->pid = pid.value();
  test->done = std::move(done);

  const auto end = [this, test](Result<std::string> result) {
    loop_.forget(test->ours.get());
    loop_.cancel(test->timer);
    kill(test->pid, SIGKILL);
    const TestDone report = std::move(test->done);
    report(std::move(result));
  };
  const auto tell_complaints = [test]() -> std::string {
    char buffer[1024];
    const ssize_t got = read(test->complaints.get(), buffer, sizeof buffer);
    return got > 0 ? std::string(buffer, static_cast<std::size_t>(got)) : "it says nothing";
  };
  test->timer = loop_.after(kTestTimeout, [=] { end(failed("not within 15 s")); });
  loop_.watch(test->ours.get(), EPOLLIN, [=](std::uint32_t) {
    char buffer[kBannerBytesMax];
    const ssize_t got = recv(test->ours.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got > 0) test->text.append(buffer, static_cast<std::size_t>(got));
    const auto line_end = test->text.find_first_of("\r\n");
    if (line_end != std::string::npos && test->text.starts_with("SSH-2.0-"))
      return end(test->text.substr(0, line_end));
    if (got <= 0) return end(failed(tell_complaints()));
    if (line_end != std::string::npos || test->text.size() > kBannerBytesMax)
      return end(failed("its first line is '" + test->text.substr(0, 80) + "'"));
  });
}

Status SshEntry::serve(UniqueFd socket, const ProxyHeader& header, std::function<void()> on_end) {
  // sshd wants a blocking socket and reads as the user: the file is readable by all, keys are
  // public.
  fcntl(socket.get(), F_SETFL, fcntl(socket.get(), F_GETFL) & ~O_NONBLOCK);
  const std::string keys_file = fmt::format("{}/ssh/{}", run_dir_, ++serial_);
  ADL_TRY_STATUS(
      write_file_atomic(keys_file, authorized_keys_for(keys_, header.client.address), 0644));
  const std::string connection =
      fmt::format("{} {} {} {}", header.client.address, header.client.port, header.endpoint.address,
                  header.endpoint.port);
  const auto pid = start_sshd(socket.get(), -1, keys_file, peer_of(socket.get()), connection);
  if (!pid.ok()) {
    unlink(keys_file.c_str());
    return pid.error();
  }
  children_.on_exit(*pid, [keys_file, on_end = std::move(on_end)](ExitStatus) {
    unlink(keys_file.c_str());
    on_end();
  });
  return {};
}

}  // namespace autodl::init
