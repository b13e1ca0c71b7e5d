// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "journal/journal.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace autodl {
namespace {

namespace fs = std::filesystem;

class JournalTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/autodl-journal-XXXXXX";
    folder_ = ::mkdtemp(pattern);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string bytes() const {
    std::ifstream in(folder_ + "/a/journal", std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void set_bytes(const std::string& text) const {
    std::ofstream(folder_ + "/a/journal", std::ios::binary | std::ios::trunc) << text;
  }
  std::string folder_;
};

TEST(Crc32c_KnownVector, Agrees) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
}

TEST_F(JournalTest, AppendedRecordsComeBackInOrder) {
  FileJournal journal(folder_);
  ASSERT_TRUE(journal.append("a", {"one", "two"}).ok());
  ASSERT_TRUE(journal.append("b", {"x"}).ok());
  ASSERT_TRUE(journal.append("a", {std::string("th\0ree", 6)}).ok());
  const auto loaded = FileJournal(folder_).load_all().value();
  ASSERT_EQ(loaded.size(), 2U);
  EXPECT_EQ(loaded[0].records, (std::vector<std::string>{"one", "two", {"th\0ree", 6}}));
  EXPECT_EQ(loaded[1].name, "b");
  EXPECT_TRUE(loaded[0].damage.empty());
}

TEST_F(JournalTest, TornAtEveryByte_KeepsWholeRecordsAndCanGoOn) {
  {
    FileJournal journal(folder_);
    ASSERT_TRUE(journal.append("a", {"first", "second", "third"}).ok());
  }
  const auto whole = bytes();
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    set_bytes(whole.substr(0, cut));
    FileJournal journal(folder_);
    const auto loaded = journal.load_all().value();
    const std::size_t expected = cut >= 52 ? 3U : cut >= 35 ? 2U : cut >= 17 ? 1U : 0U;
    ASSERT_EQ(loaded[0].records.size(), expected) << cut;
    ASSERT_TRUE(loaded[0].damage.empty()) << cut;
    ASSERT_TRUE(journal.append("a", {"later"}).ok());
    const auto again = FileJournal(folder_).load_all().value();
    ASSERT_EQ(again[0].records.size(), expected + 1) << cut;
    ASSERT_EQ(again[0].records.back(), "later");
  }
}

TEST_F(JournalTest, ZerosAtTheEnd_AreATornTail) {
  FileJournal(folder_).append("a", {"first"}).ok();
  set_bytes(bytes() + std::string(4096, '\0'));
  const auto loaded = FileJournal(folder_).load_all().value();
  EXPECT_EQ(loaded[0].records, std::vector<std::string>{"first"});
  EXPECT_TRUE(loaded[0].damage.empty());
}

TEST_F(JournalTest, FlippedBitAnywhereBeforeTheLastRecord_IsDamageAndIsKept) {
  FileJournal(folder_).append("a", {"first", "second", "third"}).ok();
  const auto whole = bytes();
  for (std::size_t at = 0; at < 35; ++at) {
    auto damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    set_bytes(damaged);
    const auto loaded = FileJournal(folder_).load_all().value();
    EXPECT_FALSE(loaded[0].damage.empty()) << at;
    EXPECT_EQ(loaded[0].records.size(), at < 17 ? 0U : 1U) << at;
    EXPECT_EQ(bytes(), damaged);
  }
}

TEST_F(JournalTest, RewriteReplacesAndAppendGoesOn) {
  FileJournal journal(folder_);
  ASSERT_TRUE(journal.append("a", {"1", "2", "3"}).ok());
  ASSERT_TRUE(journal.rewrite("a", {"all"}).ok());
  ASSERT_TRUE(journal.append("a", {"next"}).ok());
  EXPECT_EQ(FileJournal(folder_).load_all().value()[0].records,
            (std::vector<std::string>{"all", "next"}));
  ASSERT_TRUE(journal.remove("a").ok());
  ASSERT_TRUE(journal.remove("a").ok());
  EXPECT_TRUE(FileJournal(folder_).load_all().value().empty());
}

// The file-size limit makes the write fail half-way, in a process of its own.
TEST_F(JournalTest, WriteThatFailsHalfWay_LeavesNoHalfRecord) {
  FileJournal(folder_).append("a", {"first"}).ok();
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{40, 40};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::_exit(FileJournal(folder_).append("a", {std::string(100, 'x')}).ok() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  const auto loaded = FileJournal(folder_).load_all().value();
  EXPECT_EQ(loaded[0].records, std::vector<std::string>{"first"});
  EXPECT_EQ(bytes().size(), 17U);
}

}  // namespace
}  // namespace autodl
