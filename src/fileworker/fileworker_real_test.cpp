// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The static file worker in real namespaces: of an instance's own (running), and with the host's
// mount namespace and a path (stopped). Needs root.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "fileworker/spawn.hpp"
#include "fileworker/testing/file_client.hpp"

namespace autodl::fileworker {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr uid_t kUid = 200'000;

class FileWorkerReal : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(geteuid(), 0u) << "needs root";
    std::string pattern = "/var/tmp/autodl-init-fw-XXXXXX";
    base_ = mkdtemp(pattern.data());
    chmod(base_.c_str(), 0755);
    int ready[2];
    int go[2];
    ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
    ASSERT_EQ(pipe2(go, O_CLOEXEC), 0);
    holder_ = fork();
    if (holder_ == 0) hold(ready[1], go[0]);
    char byte = 'x';
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    for (const char* map : {"uid_map", "gid_map"})
      std::ofstream("/proc/" + std::to_string(holder_) + "/" + map) << "0 200000 65536\n";
    ASSERT_EQ(write(go[1], "x", 1), 1);
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    ASSERT_EQ(byte, 'k') << "the root could not be mounted";
    for (const int fd : {ready[0], ready[1], go[0], go[1]}) close(fd);
  }
  void TearDown() override {
    client_.reset();
    if (worker_ > 0) waitpid(worker_, nullptr, 0);
    kill(holder_, SIGKILL);
    waitpid(holder_, nullptr, 0);
    fs::remove_all(base_);
  }

  // A user namespace with a mount namespace whose base_ is a tmpfs of 1 MiB; stays until killed.
  [[noreturn]] void hold(int ready, int go) {
    char byte = 'x';
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 || write(ready, &byte, 1) != 1 ||
        read(go, &byte, 1) != 1 || setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0)
      _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    byte = mount("tmpfs", base_.c_str(), "tmpfs", 0, "size=1m,mode=755") == 0 &&
                   mkdir((base_ + "/root").c_str(), 0700) == 0
               ? 'k'
               : 'n';
    if (write(ready, &byte, 1) != 1) _exit(126);
    for (;;) pause();
  }

  void start(const std::string& mount_namespace) {
    const std::string proc = "/proc/" + std::to_string(holder_) + "/ns/user";
    const UniqueFd user(open(proc.c_str(), O_RDONLY | O_CLOEXEC));
    const UniqueFd mount(open(mount_namespace.c_str(), O_RDONLY | O_CLOEXEC));
    auto process = spawn_file_worker({ADL_BUILD_DIR "/apps/autodl-fileworker/autodl-fileworker",
                                      user.get(), mount.get(), base_, ""});
    ASSERT_TRUE(process.ok()) << process.error().message();
    worker_ = process.value().pid;
    client_ = std::make_unique<FileClient>(std::move(process.value().channel));
  }
  void start_running() { start("/proc/" + std::to_string(holder_) + "/ns/mnt"); }
  std::string inside(const std::string& path) const {
    return "/proc/" + std::to_string(holder_) + "/root" + base_ + path;
  }

  // A symlink made by the instance's root.
  int make_link_inside(const std::string& target, const std::string& path) const {
    const pid_t child = fork();
    if (child == 0) {
      const std::string ns = "/proc/" + std::to_string(holder_) + "/ns/";
      const UniqueFd user(open((ns + "user").c_str(), O_RDONLY | O_CLOEXEC));
      const UniqueFd mount(open((ns + "mnt").c_str(), O_RDONLY | O_CLOEXEC));
      const bool made = setns(user.get(), CLONE_NEWUSER) == 0 &&
                        setns(mount.get(), CLONE_NEWNS) == 0 && setresgid(0, 0, 0) == 0 &&
                        setresuid(0, 0, 0) == 0 &&
                        symlink(target.c_str(), (base_ + path).c_str()) == 0;
      _exit(made ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return status;
  }

  std::string base_;
  pid_t holder_ = 0;
  pid_t worker_ = 0;
  std::unique_ptr<FileClient> client_;
};

TEST_F(FileWorkerReal, RunningInstance_FilesBelongToItsRoot) {
  start_running();
  const auto stat = client_->put({"01T", "/root/a/f", 0, 0640, 0}, "hello", 2);
  ASSERT_TRUE(stat.ok()) << stat.error().message();
  struct stat info{};
  ASSERT_EQ(::stat(inside("/root/a/f").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, kUid);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
  EXPECT_EQ(client_->get({"/root/a/f", 0, 100, ""}).value().bytes, "hello");
  EXPECT_FALSE(client_->stat("/etc/passwd").ok());  // the host's root is out of reach
}

TEST_F(FileWorkerReal, StoppedInstance_TheHostsMountNamespaceAndAPath) {
  fs::create_directories(base_ + "/root");
  ASSERT_EQ(chown((base_ + "/root").c_str(), kUid, kUid), 0);
  start("/proc/self/ns/mnt");
  const auto stat = client_->put({"01T", "/root/f", 0, 0600, 0}, "hello", 2);
  ASSERT_TRUE(stat.ok()) << stat.error().message();
  struct stat info{};
  ASSERT_EQ(::stat((base_ + "/root/f").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, kUid);
  // What belongs to the host's root is not the instance's: its root can't write there.
  fs::create_directories(base_ + "/hosts");
  EXPECT_EQ(client_->put({"01T", "/hosts/f", 0, 0600, 0}, "x", 2).error().code(),
            "permission_denied");
}

TEST_F(FileWorkerReal, KeepsFourCapabilitiesAndTheFilter) {
  start_running();
  ASSERT_TRUE(client_->stat("/root").ok());  // it serves: everything has been dropped
  std::ifstream file("/proc/" + std::to_string(worker_) + "/status");
  const std::string status{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(status, HasSubstr("Uid:\t200000\t200000\t200000\t200000"));
  EXPECT_THAT(status, HasSubstr("Groups:\t \n"));
  for (const char* set : {"CapPrm", "CapEff", "CapBnd"})
    EXPECT_THAT(status, HasSubstr(std::string(set) + ":\t000000000000001b"));
  EXPECT_THAT(status, HasSubstr("CapInh:\t0000000000000000"));
  EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1"));
  EXPECT_THAT(status, HasSubstr("Seccomp:\t2"));
  // The answer may be here before the worker has let go of the folder that it looked at.
  std::vector<std::string> open_files;
  for (int i = 0; i < 1'000 && open_files.size() != 5; ++i) {
    open_files.clear();
    for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(worker_) + "/fd")) {
      std::error_code gone;
      open_files.push_back(entry.path().filename().string() + " " +
                           fs::read_symlink(entry.path(), gone).string());
    }
    std::this_thread::yield();
  }
  EXPECT_THAT(open_files, testing::SizeIs(5));  // 0-2, the channel, the root
}

TEST_F(FileWorkerReal, EveryRequestPassesTheFilter) {
  start_running();
  ASSERT_TRUE(client_->mkdir("/root/a/b/c").ok());
  ASSERT_TRUE(client_->begin({"01T", "/root/a/f", 4, 0644, 1}).ok());
  ASSERT_TRUE(client_->part(0, "ab").ok());
  ASSERT_TRUE(client_->abort({"01T", "/root/a/f"}).ok());
  ASSERT_TRUE(client_->put({"01T", "/root/a/f", 0, 0644, 1'000}, "hello", 2).ok());
  ASSERT_TRUE(client_->put({"01T", "/root/a/f", 0, 0644, 1'000}, "again", 2).ok());
  ASSERT_EQ(make_link_inside("f", "/root/a/link"), 0);
  const auto entries = client_->list({"/", true, "", 100});
  ASSERT_TRUE(entries.ok());
  EXPECT_EQ(entries.value().size(), 6u);
  EXPECT_EQ(client_->get({"/root/a/link", 0, 100, ""}).value().bytes, "again");
  EXPECT_EQ(client_->get({"/nope", 0, 1, ""}).error().code(), "not_found");
  client_.reset();
  int status = -1;
  waitpid(worker_, &status, 0);
  worker_ = 0;
  EXPECT_EQ(status, 0);
}

TEST_F(FileWorkerReal, FullDisk_IsToldWithFiguresAndGoesOnOnceThereIsRoom) {
  start_running();
  const std::string bytes(1'500'000, 'x');
  ASSERT_TRUE(
      client_->put({"02T", "/root/ballast", 0, 0644, 0}, std::string(700'000, 'b'), 100'000).ok());
  const PutBegin begin{"01T", "/root/big", static_cast<std::int64_t>(bytes.size()), 0644, 0};
  const auto full = client_->put(begin, bytes, 100'000);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code(), "no_space");
  EXPECT_EQ(full.error().kind(), ErrorKind::kExhausted);
  EXPECT_THAT(full.error().message(), HasSubstr("disk is full (1 MiB of 1 MiB used)"));
  EXPECT_THAT(full.error().remedy(), HasSubstr("larger disk"));
  const auto received = client_->begin(begin);
  ASSERT_TRUE(received.ok());
  EXPECT_GT(received.value(), 0);
  ASSERT_TRUE(client_->abort({"01T", "/root/big"}).ok());
  EXPECT_TRUE(client_->put({"03T", "/root/small", 0, 0644, 0}, "fits", 9).ok());
}

TEST_F(FileWorkerReal, ProgramThatIsAbsent_IsAnError) {
  const auto process = spawn_file_worker({"/does/not/exist", 0, 0, "", ""});
  ASSERT_FALSE(process.ok());
  EXPECT_THAT(process.error().message(), HasSubstr("/does/not/exist"));
}

}  // namespace
}  // namespace autodl::fileworker
