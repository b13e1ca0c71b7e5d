// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Instances on real runc: what one can do, what it can't, and what is left of it.
#include <arpa/inet.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "runtime/testing/real_fixture.hpp"

namespace autodl {
namespace {

using runtime::read_small_file;

TEST_F(RealRuntimeTest, Run_EndsWithItsExitCodeAndLog) {
  const auto id = instance(1);
  prepare_instance(id, "echo hello; echo world >&2; id -u; hostname; exit 7");
  start(id, run_of(1));
  const auto status = await_end(id);
  EXPECT_EQ(status.phase, ContainerPhase::kExited);
  EXPECT_EQ(status.exit_code, 7);
  EXPECT_EQ(status.run, run_of(1));
  EXPECT_FALSE(status.out_of_memory);
  EXPECT_GT(status.memory_peak_bytes, 0);
  expect_ok(runtime_->remove_container(id));
  expect_ok(runtime_->remove_container(id));
  const auto log = log_of(id, run_of(1));
  EXPECT_NE(log.find("stdout F hello"), std::string::npos) << log;
  EXPECT_NE(log.find("stderr F world"), std::string::npos) << log;
  EXPECT_NE(log.find("stdout F 0\n"), std::string::npos) << log;
  EXPECT_NE(log.find("autodl-001"), std::string::npos) << log;
  EXPECT_EQ(runtime_->status(id).value_or({}).phase, ContainerPhase::kNone);
}

TEST_F(RealRuntimeTest, Calls_RepeatedOrOutOfOrder_AreHarmlessOrRefused) {
  const auto id = instance(1);
  prepare_instance(id, "sleep 1000");
  EXPECT_EQ(code_of(runtime_->start_container(id, run_of(1))), "no_container");
  expect_ok(runtime_->create_container(spec_for(id, run_of(1))));
  expect_ok(runtime_->create_container(spec_for(id, run_of(1))));
  EXPECT_EQ(runtime_->status(id).value_or({}).phase, ContainerPhase::kCreated);
  EXPECT_EQ(code_of(runtime_->create_container(spec_for(id, run_of(2)))), "other_container");
  EXPECT_EQ(code_of(runtime_->start_container(id, run_of(2))), "no_container");
  expect_ok(runtime_->start_container(id, run_of(1)));
  expect_ok(runtime_->start_container(id, run_of(1)));
  EXPECT_EQ(runtime_->status(id).value_or({}).phase, ContainerPhase::kRunning);
  EXPECT_EQ(code_of(runtime_->release_root(id)), "container_exists");
  expect_ok(runtime_->kill_container(id));
  EXPECT_EQ(await_end(id).exit_code, 137);
  EXPECT_EQ(code_of(runtime_->start_container(id, run_of(1))), "already_ran");
  EXPECT_EQ(code_of(runtime_->create_container(spec_for(id, run_of(1)))), "already_ran");
}

TEST_F(RealRuntimeTest, Files_StayOverRuns_AndBootDoesNot) {
  const auto id = instance(1);
  prepare_instance(id,
                   "echo kept > /root/kept; echo data > /root/autodl-tmp/data; "
                   "cat /run/autodl/boot/key; echo '{}' > /run/autodl/boot/exit.json");
  start(id, run_of(1));
  EXPECT_EQ(await_end(id).exit_record, "{}\n");
  expect_ok(runtime_->remove_container(id));
  expect_ok(runtime_->release_root(id));
  prepare_instance(id, "cat /root/kept /root/autodl-tmp/data; ls /run/autodl/boot");
  start(id, run_of(2));
  EXPECT_EQ(await_end(id).exit_record, "");
  const auto log = log_of(id, run_of(2));
  EXPECT_NE(log.find("F kept"), std::string::npos) << log;
  EXPECT_NE(log.find("F data"), std::string::npos) << log;
}

TEST_F(RealRuntimeTest, Conmon_Killed_ContainerGoesOnAndIsAdopted) {
  const auto id = instance(1);
  prepare_instance(
      id, "touch /root/autodl-tmp/up; while [ ! -e /root/autodl-tmp/go ]; do sleep 0.05; done");
  start(id, run_of(1));
  ASSERT_TRUE(await_file(disk(id) + "/data/up"));
  const auto conmon =
      std::stoi(*read_small_file(config_.run_dir + "/c/" + id.str() + "/conmon.pid"));
  ASSERT_EQ(::kill(conmon, SIGKILL), 0);
  make_runtime();
  auto found = runtime_->scan();
  ASSERT_TRUE(found.ok());
  const auto mine =
      std::find_if(found->begin(), found->end(), [&](const auto& item) { return item.id == id; });
  ASSERT_NE(mine, found->end());
  EXPECT_TRUE(mine->disk);
  EXPECT_TRUE(mine->mounted);
  EXPECT_EQ(mine->container.phase, ContainerPhase::kRunning);
  EXPECT_EQ(mine->container.run, run_of(1));
  expect_ok(runtime::write_atomically(disk(id) + "/data/go", ""));
  const auto status = await_end(id);
  EXPECT_EQ(status.phase, ContainerPhase::kExited);
  EXPECT_FALSE(status.exit_code.has_value()) << "nobody saw it";
}

TEST_F(RealRuntimeTest, Disk_Full_IsToldInsideAndStaysHard) {
  const auto id = instance(1);
  prepare_instance(
      id,
      "dd if=/dev/zero of=/root/fill bs=1M count=400 2>&1; df -m / | tail -1; "
      "dd if=/dev/zero of=/root/autodl-tmp/fill bs=1M count=10 2>&1; ls -l /root/fill");
  start(id, run_of(1));
  await_end(id);
  const auto log = log_of(id, run_of(1));
  EXPECT_NE(log.find("No space left on device"), std::string::npos) << log;
  struct stat image{};
  ASSERT_EQ(::stat((config_.state_dir + "/disks/" + id.str() + ".img").c_str(), &image), 0);
  EXPECT_LE(image.st_blocks * 512, std::int64_t{128} << 20);
  EXPECT_GT(runtime_->disk_used_bytes(id).value_or(0), std::int64_t{100} << 20);
}

TEST_F(RealRuntimeTest, Disk_BeyondHostSpace_IsRefused) {
  const auto id = instance(1);
  const auto refused = runtime_->ensure_disk({id, std::int64_t{1} << 50, 1});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), "no_space");
  EXPECT_EQ(refused.error().kind(), ErrorKind::kExhausted);
}

TEST_F(RealRuntimeTest, Memory_BeyondLimit_IsReported) {
  const auto id = instance(1);
  prepare_instance(id, "x=0123456789abcdef; while :; do x=$x$x; done");
  start(id, run_of(1), 64);
  const auto status = await_end(id);
  EXPECT_TRUE(status.out_of_memory);
  EXPECT_GE(status.memory_peak_bytes, std::int64_t{60} << 20);
}

TEST_F(RealRuntimeTest, Privileges_AreThoseOfNobody) {
  const auto id = instance(1);
  prepare_instance(
      id,
      "mknod /root/disk b 7 0 && echo BAD mknod\n"
      "mount -t tmpfs none /mnt 2>/dev/null && echo BAD mount\n"
      "ip link add x type dummy 2>/dev/null && echo BAD link\n"
      "echo 1 > /proc/sys/vm/drop_caches && echo BAD sysctl\n"
      "echo x > /opt/autodl/x && echo BAD toolbox\n"
      "dd if=/proc/kcore of=/dev/null bs=1 count=1 2>/dev/null | grep -q . && echo BAD kcore\n"
      "[ -r /dev/vda ] && echo BAD vda\n"
      "ulimit -c\n"
      "df -m /dev/shm | tail -1\n"
      "grep -i -e seccomp: -e capbnd /proc/self/status\n"
      "cat /proc/self/uid_map\n"
      "ls -ld /etc/hosts /root/autodl-tmp; cat /etc/hosts /etc/resolv.conf\n"
      "cat /proc/sys/net/ipv4/ip_unprivileged_port_start; echo done");
  start(id, run_of(1));
  await_end(id);
  const auto log = log_of(id, run_of(1));
  EXPECT_EQ(log.find("BAD"), std::string::npos) << log;
  EXPECT_NE(log.find("Seccomp:\t2"), std::string::npos) << log;
  EXPECT_NE(log.find("900065536"), std::string::npos) << log;
  EXPECT_NE(log.find("127.0.0.1\tlocalhost"), std::string::npos) << log;
  EXPECT_NE(log.find("F done"), std::string::npos) << log;
}

TEST_F(RealRuntimeTest, FortyLayers_MountAndRun) {
  const auto id = instance(1);
  prepare_instance(id, "ls / | wc -l; exit 3", kLayers40);
  start(id, run_of(1));
  EXPECT_EQ(await_end(id).exit_code, 3);
}

TEST_F(RealRuntimeTest, Veil_GivesNamesWithoutTouchingTheDisk) {
  const auto id = instance(1);
  prepare_instance(id,
                   "ls -l /usr/bin/shutdown /usr/bin/poweroff /workspace; touch /workspace/mine; "
                   "ls /root/autodl-tmp/mine && echo linked");
  start(id, run_of(1));
  await_end(id);
  const auto log = log_of(id, run_of(1));
  EXPECT_NE(log.find("/usr/bin/shutdown -> /opt/autodl/sbin/shutdown"), std::string::npos) << log;
  EXPECT_NE(log.find("F linked"), std::string::npos) << log;
  for (const char* name : {"usr", "workspace", "opt"})
    EXPECT_FALSE(runtime::path_exists(disk(id) + "/upper/" + name)) << name;
}

// A host listener that instances must not reach.
class HostListener {
 public:
  HostListener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(fd_.get(), 8), 0);
    EXPECT_EQ(::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  int port() const { return port_; }

 private:
  UniqueFd fd_;
  int port_ = 0;
};

bool reaches(const std::string& host, int port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  const timeval limit{2, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  return ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

TEST_F(RealRuntimeTest, Network_NodeReachesInstances_TheyReachNeitherHostNorEachOther) {
  const HostListener host;
  const auto a = instance(1), b = instance(2);
  const auto serve = "httpd -f -p 8000 & touch /root/autodl-tmp/up; wait";
  prepare_instance(b, serve);
  start(b, run_of(2));
  ASSERT_TRUE(await_file(disk(b) + "/data/up"));
  const auto to_b = runtime_->address_of(2), gateway = std::string("100.127.0.1");
  const auto attempt = [](const std::string& name, const std::string& address, int port) {
    return fmt::format("nc -w 1 {} {} </dev/null && echo REACHED-{}\n", address, port, name);
  };
  prepare_instance(a, attempt("other", to_b, 8000) + attempt("gateway", gateway, host.port()) +
                          attempt("host", "192.0.2.2", host.port()) +
                          attempt("metadata", "169.254.169.254", 80) +
                          "httpd -f -p 8000 & sleep 0.1\n" + attempt("self", "127.0.0.1", 8000) +
                          "touch /root/autodl-tmp/tried; wait");
  start(a, run_of(1));
  ASSERT_TRUE(await_file(disk(a) + "/data/tried"));
  for (int turn = 0; turn < 200 && !reaches(to_b, 8000); ++turn) ::poll(nullptr, 0, 10);
  EXPECT_TRUE(reaches(to_b, 8000));
  EXPECT_TRUE(reaches(runtime_->address_of(1), 8000));
  const auto log = log_of(a, run_of(1));
  for (const char* name : {"other", "gateway", "host", "metadata"})
    EXPECT_EQ(log.find(fmt::format("REACHED-{}", name)), std::string::npos) << log;
  EXPECT_NE(log.find("REACHED-self"), std::string::npos) << log;
  // What goes to an instance that is not there does not take the default route.
  EXPECT_FALSE(reaches(runtime_->address_of(77), 8000));
}

TEST_F(RealRuntimeTest, Log_OfAFlood_KeepsHeadAndTailAndNeverBlocks) {
  const auto id = instance(1);
  prepare_instance(id,
                   "echo first; yes "
                   "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefg"
                   "hijklmnopqrstuvwxyz | head -n 2000000; echo last");
  const auto begin = std::chrono::steady_clock::now();
  start(id, run_of(1));
  EXPECT_EQ(await_end(id).exit_code, 0);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  expect_ok(runtime_->remove_container(id));
  const auto path = runtime_->log_path(id, run_of(1));
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_LT(info.st_blocks * 512, std::int64_t{68} << 20);
  EXPECT_NE(log_of(id, run_of(1)).find("F first"), std::string::npos);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string tail(4096, '\0');
  EXPECT_GT(::pread(fd.get(), tail.data(), tail.size(), info.st_size - 4096), 0);
  EXPECT_NE(tail.find("F last"), std::string::npos);
  fmt::print("log: {} MiB in {:.1f} s, {} MiB kept\n", info.st_size >> 20, took.count(),
             info.st_blocks * 512 >> 20);
}

TEST_F(RealRuntimeTest, Log_DiskFull_DropsOutputAndSaysSo) {
  config_.log_disk_bytes = std::int64_t{24} << 20;
  config_.log_tail_bytes = std::int64_t{1} << 40;  // nothing is ever freed
  make_runtime();
  const auto id = instance(1);
  prepare_instance(id,
                   "yes 0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz | "
                   "head -n 1000000; touch /root/autodl-tmp/done; sleep 1");
  start(id, run_of(1));
  EXPECT_EQ(await_end(id).exit_code, 0);
  EXPECT_TRUE(runtime::path_exists(disk(id) + "/data/done"));
  expect_ok(runtime_->remove_container(id));
  struct stat info{};
  ASSERT_EQ(::stat(runtime_->log_path(id, run_of(1)).c_str(), &info), 0);
  EXPECT_LE(info.st_blocks * 512, config_.log_disk_bytes);
}

TEST_F(RealRuntimeTest, Namespaces_OfAStoppedInstance_ShowItsRootAndData) {
  const auto id = instance(1);
  prepare_instance(id, "ls -ln /root/autodl-tmp/put /root/put");
  auto spaces = runtime_->namespaces(id, 1);
  ASSERT_TRUE(spaces.ok()) << spaces.error().message();
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setns(spaces->user.get(), CLONE_NEWUSER) != 0) ::_exit(1);
    if (::setns(spaces->mount.get(), CLONE_NEWNS) != 0) ::_exit(2);
    if (::setgid(0) != 0 || ::setuid(0) != 0 || ::chdir("/") != 0) ::_exit(3);
    for (const char* path : {"/root/autodl-tmp/put", "/root/put"})
      if (::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644) < 0) ::_exit(4);
    ::_exit(::access("/bin/busybox", X_OK) == 0 && ::access("/etc/shadow-of-host", F_OK) != 0 ? 0
                                                                                              : 5);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  *spaces = {};
  start(id, run_of(1));
  EXPECT_EQ(await_end(id).exit_code, 0) << log_of(id, run_of(1));
  EXPECT_NE(log_of(id, run_of(1)).find(" 0        0 "), std::string::npos) << log_of(id, run_of(1));
}

TEST_F(RealRuntimeTest, Parallel_InstancesDoNotDisturbEachOther) {
  std::vector<InstanceId> ids;
  for (int number = 1; number <= 8; ++number) ids.push_back(instance(number));
  for (const auto& id : ids) prepare_instance(id, "exit 5");
  std::vector<std::thread> threads;
  for (int number = 1; number <= 8; ++number)
    threads.emplace_back(
        [&, number] { start(ids[static_cast<std::size_t>(number - 1)], run_of(number)); });
  for (auto& thread : threads) thread.join();
  for (const auto& id : ids) EXPECT_EQ(await_end(id).exit_code, 5);
}

TEST_F(RealRuntimeTest, Times_OfOneInstance) {
  std::vector<double> disk_ms, root_ms, create_ms, start_ms, remove_ms;
  const auto timed = [](std::vector<double>& into, auto call) {
    const auto begin = std::chrono::steady_clock::now();
    const Status done = call();
    into.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count());
    EXPECT_TRUE(done.ok()) << done.error().message();
  };
  for (const char* image : {kBusybox, kLayers40}) {
    const auto info = runtime_->ensure_image(image, {});
    ASSERT_TRUE(info.ok());
    for (auto* list : {&disk_ms, &root_ms, &create_ms, &start_ms, &remove_ms}) list->clear();
    for (int turn = 0; turn < 15; ++turn) {
      const auto id = instance(1);
      timed(disk_ms, [&] { return runtime_->ensure_disk({id, std::int64_t{20} << 30, 1}); });
      timed(root_ms, [&] { return runtime_->ensure_root({id, info->digest, 1}); });
      write_job(id, "sleep 100");
      timed(create_ms, [&] { return runtime_->create_container(spec_for(id, run_of(turn))); });
      timed(start_ms, [&] { return runtime_->start_container(id, run_of(turn)); });
      expect_ok(runtime_->kill_container(id));
      timed(remove_ms, [&] { return runtime_->remove_container(id); });
      expect_ok(runtime_->destroy(id));
    }
    const auto p50 = [](std::vector<double>& list) {
      std::sort(list.begin(), list.end());
      return list[list.size() / 2];
    };
    fmt::print(
        "{}: p50 of 15, ms: disk {:.0f}, root {:.0f}, create {:.0f}, start {:.0f}, remove {:.0f}\n",
        image, p50(disk_ms), p50(root_ms), p50(create_ms), p50(start_ms), p50(remove_ms));
  }
}

}  // namespace
}  // namespace autodl
