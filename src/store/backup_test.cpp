// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "store/backup.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "store/sqlite_store.hpp"

namespace autodl {
namespace {

class Backup : public testing::Test {
 protected:
  Backup() {
    folder = testing::TempDir() + "backup-" + std::to_string(::getpid());
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    path = folder + "/autodl.db";
    copy = folder + "/copy.db";
    open();
  }
  ~Backup() override {
    store.reset();
    std::filesystem::remove_all(folder);
  }
  void open() {
    auto opened = SqliteStore::open(path, clock, random);
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    store = std::move(*opened);
  }
  void add(const char* name) {
    Batch batch;
    AccountRow row;
    row.id = AccountId(name);
    row.name = name;
    batch.accounts = {row};
    Event event;
    event.seq = ++seq;
    event.type = "created";
    event.account = row.id;
    batch.events = {event};
    ASSERT_TRUE(store->commit(batch).ok());
  }
  ManualClock clock;
  SeededRandom random{1};
  std::string folder, path, copy;
  std::unique_ptr<SqliteStore> store;
  std::int64_t seq = 0;
};

TEST_F(Backup, OfAStoreInUse_ComesBackWithAHigherEpoch) {
  const auto first = *store->load();
  add("anna");
  ASSERT_TRUE(backup_store(path, copy).ok());
  struct stat facts{};
  ASSERT_EQ(::stat(copy.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0600u);
  EXPECT_FALSE(backup_store(path, copy).ok()) << "a file that is there is never written over";
  add("boris");
  EXPECT_EQ(restore_store(copy, path, clock).error().code(), "store_in_use");
  store.reset();
  const auto restored = restore_store(copy, path, clock);
  ASSERT_TRUE(restored.ok()) << restored.error().message();
  open();
  const auto loaded = *store->load();
  EXPECT_EQ(loaded.cluster, first.cluster);
  EXPECT_GT(loaded.epoch, first.epoch + 900'000);
  EXPECT_GT(loaded.last_event_seq, 900'000);
  ASSERT_EQ(loaded.accounts.size(), 1u);
  EXPECT_EQ(loaded.accounts[0].name, "anna");
  store.reset();
  // What was there before is kept, whole, and can be taken back in its turn.
  ASSERT_TRUE(restore_store(path + ".before-restore", path, clock).ok());
  open();
  const auto again = *store->load();
  EXPECT_EQ(again.accounts.size(), 2u);
  EXPECT_GT(again.epoch, loaded.epoch);
}

TEST_F(Backup, Damaged_IsRefusedAndNothingIsChanged) {
  add("anna");
  ASSERT_TRUE(backup_store(path, copy).ok());
  store.reset();
  std::filesystem::resize_file(copy, std::filesystem::file_size(copy) / 2);
  EXPECT_EQ(restore_store(copy, path, clock).error().code(), "bad_backup");
  std::ofstream(copy) << "no store";
  EXPECT_EQ(restore_store(copy, path, clock).error().code(), "bad_backup");
  EXPECT_EQ(restore_store(folder + "/none", path, clock).error().code(), "bad_backup");
  open();
  EXPECT_EQ(store->load()->accounts.size(), 1u);
}

TEST_F(Backup, OverADamagedStore_AndOfAnotherCluster) {
  add("anna");
  ASSERT_TRUE(backup_store(path, copy).ok());
  store.reset();
  std::filesystem::remove(path);
  open();  // a new store, of another cluster
  ASSERT_TRUE(store->load().ok());
  store.reset();
  EXPECT_EQ(restore_store(copy, path, clock).error().code(), "other_cluster");
  std::ofstream(path) << "damaged beyond repair";
  const auto restored = restore_store(copy, path, clock);
  ASSERT_TRUE(restored.ok()) << restored.error().message();
  open();
  EXPECT_EQ(store->load()->accounts.size(), 1u);
}

}  // namespace
}  // namespace autodl
