// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The worker over a socketpair, below a temporary folder as root.
#include "fileworker/worker.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "fileworker/sha256.hpp"
#include "fileworker/testing/file_client.hpp"

namespace autodl::fileworker {
namespace {

namespace fs = std::filesystem;

class FileWorker : public testing::Test {
 protected:
  FileWorker() {
    std::string pattern = testing::TempDir() + "/autodl-init-files-XXXXXX";
    base_ = mkdtemp(pattern.data());
    fs::create_directories(base_ + "/root");
    connect();
  }
  ~FileWorker() override {
    disconnect();
    fs::remove_all(base_);
  }
  void connect() {
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    client_ = std::make_unique<FileClient>(UniqueFd(pair[0]));
    thread_ = std::thread([this, fd = pair[1]] {
      RootDir root(UniqueFd(open(base_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)));
      served_ = Worker(std::move(root), UniqueFd(fd)).serve();
    });
  }
  void disconnect() {
    client_.reset();
    if (thread_.joinable()) thread_.join();
  }
  std::string text_of(const std::string& path) {
    std::ifstream in(base_ + path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write_text(const std::string& path, const std::string& text) {
    std::ofstream(base_ + path) << text;
  }
  static std::string code(const auto& result) { return result.ok() ? "ok" : result.error().code(); }
  // Everything below root but what the worker was asked for.
  std::size_t part_files() {
    std::size_t count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(base_))
      if (entry.path().filename().string().starts_with(kPartPrefix)) ++count;
    return count;
  }

  std::string base_;
  std::unique_ptr<FileClient> client_;
  std::thread thread_;
  Status served_;
};

const std::string kText = "print('hello')\n";

TEST_F(FileWorker, Upload_ArrivesWithModeTimeAndParents) {
  PutBegin begin{"01T", "/root/new/deep/train.py", 0, 0750, 1'700'000'000'123'456'789};
  const auto stat = client_->put(begin, kText, 4);
  ASSERT_TRUE(stat.ok()) << stat.error().message();
  EXPECT_EQ(text_of(begin.path), kText);
  EXPECT_EQ(stat.value().mode, 0750u);
  EXPECT_EQ(stat.value().mtime_ns, begin.mtime_ns);
  EXPECT_EQ(stat.value().sha256, Sha256::of(kText));
  EXPECT_EQ(part_files(), 0u);
}

TEST_F(FileWorker, Upload_EmptyFile) {
  EXPECT_TRUE(client_->put({"01T", "/root/empty", 0, 0644, 0}, "", 4).ok());
  EXPECT_TRUE(fs::exists(base_ + "/root/empty"));
}

TEST_F(FileWorker, Upload_GoesOnAfterTheWorkerDied) {
  const PutBegin begin{"01T", "/root/f", 15, 0644, 0};
  EXPECT_EQ(client_->begin(begin).value(), 0);
  EXPECT_EQ(client_->part(0, kText.substr(0, 6)).value(), 6);
  disconnect();
  connect();
  EXPECT_EQ(client_->begin(begin).value(), 6);
  EXPECT_EQ(client_->part(3, kText.substr(3, 5)).value(), 8);  // a part sent again, and more
  EXPECT_EQ(code(client_->part(9, "x")), "gap");
  EXPECT_EQ(code(client_->commit(Sha256::of(kText))), "incomplete");
  EXPECT_EQ(client_->part(8, kText.substr(8)).value(), 15);
  EXPECT_FALSE(fs::exists(base_ + "/root/f"));
  EXPECT_EQ(code(client_->commit(Sha256::of(kText))), "ok");
  EXPECT_EQ(text_of("/root/f"), kText);
}

TEST_F(FileWorker, Upload_WrongPartIsNotWritten) {
  ASSERT_TRUE(client_->begin({"01T", "/root/f", 4, 0644, 0}).ok());
  EXPECT_EQ(code(client_->part(0, "good", Sha256::of("evil"))), "hash_mismatch");
  EXPECT_EQ(fs::file_size(base_ + "/root/.autodl-part-01T"), 0u);
  EXPECT_EQ(code(client_->part(0, "toolong")), "too_long");
}

TEST_F(FileWorker, Upload_WrongWholeLeavesTheOldFile) {
  write_text("/root/f", "old");
  ASSERT_TRUE(client_->begin({"01T", "/root/f", 3, 0644, 0}).ok());
  ASSERT_TRUE(client_->part(0, "new").ok());
  EXPECT_EQ(code(client_->commit(Sha256::of("else"))), "hash_mismatch");
  EXPECT_EQ(text_of("/root/f"), "old");
  EXPECT_EQ(part_files(), 0u);
}

TEST_F(FileWorker, Upload_AbortLeavesNothing) {
  const PutBegin begin{"01T", "/root/f", 3, 0644, 0};
  ASSERT_TRUE(client_->begin(begin).ok());
  ASSERT_TRUE(client_->part(0, "ne").ok());
  EXPECT_TRUE(client_->abort({"01T", "/root/f"}).ok());
  EXPECT_TRUE(client_->abort({"01T", "/root/f"}).ok());
  EXPECT_TRUE(client_->abort({"01T", "/nowhere/f"}).ok());
  EXPECT_EQ(part_files(), 0u);
  EXPECT_EQ(code(client_->part(2, "w")), "no_upload");
}

TEST_F(FileWorker, Upload_SymlinkAtTheTargetIsReplacedNotFollowed) {
  write_text("/root/precious", "precious");
  fs::create_symlink("precious", base_ + "/root/f");
  ASSERT_TRUE(client_->put({"01T", "/root/f", 0, 0644, 0}, "new", 9).ok());
  EXPECT_EQ(text_of("/root/precious"), "precious");
  EXPECT_FALSE(fs::is_symlink(base_ + "/root/f"));
}

TEST_F(FileWorker, Upload_HardLinkAtTheTargetKeepsTheOtherName) {
  write_text("/root/precious", "precious");
  fs::create_hard_link(base_ + "/root/precious", base_ + "/root/f");
  ASSERT_TRUE(client_->put({"01T", "/root/f", 0, 0644, 0}, "new", 9).ok());
  EXPECT_EQ(text_of("/root/precious"), "precious");
}

TEST_F(FileWorker, Upload_WhatLiesUnderThePartFilesNameIsNeverWrittenTo) {
  write_text("/root/precious", "precious");
  const std::string part = base_ + "/root/.autodl-part-01T";
  fs::create_symlink("precious", part);
  ASSERT_TRUE(client_->put({"01T", "/root/f", 0, 0644, 0}, "new", 9).ok());
  fs::create_hard_link(base_ + "/root/precious", part);
  ASSERT_TRUE(client_->put({"01T", "/root/f", 0, 0644, 0}, "new", 9).ok());
  ASSERT_EQ(mkfifo(part.c_str(), 0666), 0);
  ASSERT_TRUE(client_->put({"01T", "/root/f", 0, 0644, 0}, "new", 9).ok());
  EXPECT_EQ(text_of("/root/precious"), "precious");
}

TEST_F(FileWorker, Paths_NeverLeadOutOfTheRoot) {
  const std::string outside = base_ + "-outside";
  fs::create_directories(outside);
  std::ofstream(outside + "/secret") << "secret";
  fs::create_symlink(outside, base_ + "/root/abs");
  fs::create_symlink("../../../../../../../../../../" + outside, base_ + "/root/rel");
  for (const char* folder : {"/root/abs", "/root/rel"}) {
    EXPECT_EQ(code(client_->get({std::string(folder) + "/secret", 0, 100, ""})), "not_found");
    // A symlink to nowhere (as seen from inside) is in the way; nothing is made through it.
    EXPECT_EQ(code(client_->put({"01T", std::string(folder) + "/x", 0, 0644, 0}, "x", 9)),
              "exists");
    EXPECT_EQ(code(client_->mkdir(std::string(folder) + "/y")), "exists");
  }
  EXPECT_EQ(code(client_->get({"/root/../../etc/passwd", 0, 100, ""})), "bad_path");
  EXPECT_EQ(std::distance(fs::directory_iterator(outside), fs::directory_iterator()), 1);
  fs::remove_all(outside);
}

TEST_F(FileWorker, Paths_AbsoluteSymlinksResolveInside) {
  fs::create_directories(base_ + "/data");
  fs::create_symlink("/data", base_ + "/root/work");
  ASSERT_TRUE(client_->put({"01T", "/root/work/f", 0, 0644, 0}, "x", 9).ok());
  EXPECT_EQ(text_of("/data/f"), "x");
}

TEST_F(FileWorker, SpecialFiles_AreRefusedByName) {
  ASSERT_EQ(mkfifo((base_ + "/root/fifo").c_str(), 0666), 0);
  EXPECT_EQ(code(client_->get({"/root/fifo", 0, 1, ""})), "special_file");
  EXPECT_EQ(code(client_->put({"01T", "/root/fifo", 0, 0644, 0}, "x", 9)), "special_file");
  EXPECT_EQ(code(client_->put({"01T", "/root/fifo/x", 0, 0644, 0}, "x", 9)), "not_a_directory");
  EXPECT_EQ(code(client_->put({"01T", "/root", 0, 0644, 0}, "x", 9)), "is_a_directory");
  EXPECT_EQ(code(client_->get({"/root", 0, 1, ""})), "is_a_directory");
}

TEST_F(FileWorker, Get_RangesHashesAndNoticesChange) {
  write_text("/root/f", "0123456789");
  const auto first = client_->get({"/root/f", 2, 4, ""});
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first.value().bytes, "2345");
  EXPECT_EQ(first.value().end.sha256, Sha256::of("2345"));
  EXPECT_EQ(first.value().end.size, 10);
  const std::string etag = first.value().end.etag;
  EXPECT_EQ(client_->get({"/root/f", 8, 100, etag}).value().bytes, "89");
  EXPECT_EQ(client_->get({"/root/f", 50, 100, etag}).value().bytes, "");
  write_text("/root/f", "changed, and longer");
  EXPECT_EQ(code(client_->get({"/root/f", 0, 4, etag})), "file_changed");
}

TEST_F(FileWorker, Get_EightMebibytesComeWhole) {
  const std::string big(kGetBytesMax, 'b');
  write_text("/root/big", big);
  const auto got = client_->get({"/root/big", 0, kGetBytesMax, ""});
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got.value().bytes, big);
}

TEST_F(FileWorker, Mkdir_StatAndList) {
  EXPECT_EQ(client_->mkdir("/root/a/b").value().type, FileType::kDirectory);
  EXPECT_EQ(code(client_->mkdir("/root/a/b")), "ok");
  write_text("/root/a/f", "x");
  EXPECT_EQ(code(client_->mkdir("/root/a/f")), "not_a_directory");
  EXPECT_EQ(client_->stat("/root/a/f").value().size, 1);
  EXPECT_EQ(code(client_->stat("/nope")), "not_found");
  const auto entries = client_->list({"/root", true, "", 100});
  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries.value().size(), 3u);
  EXPECT_EQ(entries.value()[1].path, "a/b");
}

TEST_F(FileWorker, BadRequest_IsAnsweredAndTheChannelGoesOn) {
  EXPECT_EQ(code(client_->mkdir("relative")), "bad_path");
  EXPECT_EQ(code(client_->mkdir("/root/fine")), "ok");
}

TEST_F(FileWorker, UnknownFrame_EndsTheWorker) {
  client_->send_raw(std::string("\x01\0\0\0\0", 5));
  thread_.join();
  EXPECT_FALSE(served_.ok());
}

TEST_F(FileWorker, OverlongFrame_EndsTheWorker) {
  client_->send_raw(std::string("\x40\xff\xff\xff\xff", 5));
  thread_.join();
  EXPECT_EQ(served_.error().code(), "frame_too_long");
}

TEST(RootDirTest, KernelFileSystems_AreRefused) {
  RootDir root(UniqueFd(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)));
  for (const char* path : {"/proc/self/environ", "/proc/1/mem", "/sys/kernel", "/dev/pts"}) {
    const auto opened = root.open(path, O_RDONLY);
    EXPECT_FALSE(opened.ok()) << path;
  }
  EXPECT_EQ(root.open("/proc/uptime", O_RDONLY).error().code(), "system_path");
  EXPECT_EQ(root.open("/proc/self/root/etc/passwd", O_RDONLY).error().code(), "symlink_refused");
  EXPECT_EQ(root.open("/dev/null", O_RDONLY).error().code(), "special_file");
}

}  // namespace
}  // namespace autodl::fileworker
