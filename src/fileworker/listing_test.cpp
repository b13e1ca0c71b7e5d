// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "fileworker/listing.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace autodl::fileworker {
namespace {

namespace fs = std::filesystem;

class Listing : public testing::Test {
 protected:
  Listing() {
    std::string pattern = testing::TempDir() + "/autodl-init-list-XXXXXX";
    base_ = mkdtemp(pattern.data());
    root_ = std::make_unique<RootDir>(UniqueFd(open(base_.c_str(), O_PATH | O_DIRECTORY)));
  }
  ~Listing() override { fs::remove_all(base_); }
  void file(const std::string& path) {
    fs::create_directories(fs::path(base_ + path).parent_path());
    std::ofstream(base_ + path) << path;
  }
  std::vector<std::string> all(const std::string& path, std::int64_t limit) {
    std::vector<std::string> paths;
    FileList request{path, true, "", limit};
    do {
      const auto page = list_page(*root_, request);
      EXPECT_TRUE(page.ok());
      if (!page.ok()) break;
      EXPECT_LE(page.value().entries.size(), static_cast<std::size_t>(limit));
      for (const FileStat& entry : page.value().entries) paths.push_back(entry.path);
      skipped_ = page.value().end.skipped;
      request.cursor = page.value().end.next;
    } while (!request.cursor.empty());
    return paths;
  }

  std::string base_;
  std::unique_ptr<RootDir> root_;
  std::int64_t skipped_ = 0;
};

TEST_F(Listing, PagesAddUpWhateverTheirSize) {
  for (const char* path :
       {"/t/a/x", "/t/a/y", "/t/a.b", "/t/a-b/z", "/t/b", "/t/中文", "/t/0/1/2/3"})
    file(path);
  const std::vector<std::string> expected{"0",   "0/1", "0/1/2", "0/1/2/3", "a", "a/x",
                                          "a/y", "a-b", "a-b/z", "a.b",     "b", "中文"};
  const auto whole = all("/t", 1000);
  EXPECT_EQ(std::set<std::string>(whole.begin(), whole.end()),
            std::set<std::string>(expected.begin(), expected.end()));
  for (std::int64_t limit = 1; limit <= 12; ++limit) EXPECT_EQ(all("/t", limit), whole) << limit;
}

TEST_F(Listing, NothingBelowIsFollowedAndPartFilesAreHidden) {
  file("/t/real");
  file("/t/.autodl-part-01");
  fs::create_symlink("/etc", base_ + "/t/etc");
  fs::create_symlink(".", base_ + "/t/loop");
  EXPECT_EQ(all("/t", 10), (std::vector<std::string>{"etc", "loop", "real"}));
}

TEST_F(Listing, NamesThatAreNotUtf8_AreCounted) {
  file("/t/good");
  file("/t/bad\xff");
  EXPECT_EQ(all("/t", 10), (std::vector<std::string>{"good"}));
  EXPECT_EQ(skipped_, 1);
}

TEST_F(Listing, DepthIsBounded) {
  std::string path = "/t";
  for (int i = 0; i < 100; ++i) path += "/d";
  fs::create_directories(base_ + path);
  EXPECT_EQ(all("/t", 1000).size(), kDepthMax);
  EXPECT_EQ(skipped_, 1);
}

TEST_F(Listing, FileIsOneEntry) {
  file("/t/one");
  const auto page = list_page(*root_, {"/t/one", true, "", 10});
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page.value().end.type, FileType::kFile);
  ASSERT_EQ(page.value().entries.size(), 1u);
  EXPECT_EQ(page.value().entries[0].path, "");
}

TEST(Utf8, Table) {
  for (const char* good : {"", "a", "é", "中", "🚀", "\x7f"}) EXPECT_TRUE(is_utf8(good)) << good;
  for (const char* bad : {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\x80",
                          "\xe0\x80\x80", "a\xe4\xb8"})
    EXPECT_FALSE(is_utf8(bad));
}

}  // namespace
}  // namespace autodl::fileworker
