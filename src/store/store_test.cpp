// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The contract of Store, run on every implementation, and what SQLite adds.
#include "store/store.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "store/memory_store.hpp"
#include "store/secret_box.hpp"
#include "store/sqlite_store.hpp"

namespace autodl {
namespace {

const UtcTime kNow{std::chrono::seconds{1'800'000'000}};

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "autodl-store-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

struct MemoryFixture {
  MemoryStore memory{"cluster"};
  Store& get() { return memory; }
  void reopen() {}
};

struct SqliteFixture {
  TempFolder folder;
  ManualClock clock;
  SeededRandom random{1};
  std::unique_ptr<SqliteStore> store;
  SqliteFixture() { reopen(); }
  Store& get() { return *store; }
  void reopen() {
    store.reset();
    auto opened = SqliteStore::open(folder.file("db"), clock, random);
    ADL_ASSERT(opened.ok());
    store = std::move(opened).value();
  }
};

template <class Fixture>
class StoreContract : public testing::Test {
 public:
  Fixture fixture;
};
using Stores = testing::Types<MemoryFixture, SqliteFixture>;
TYPED_TEST_SUITE(StoreContract, Stores);

Batch whole_batch() {
  Batch batch;
  batch.accounts = {{AccountId("A"), "安娜", Role::kOperator, kNow, 3, GroupId("G")}};
  InstanceRow instance;
  instance.id = InstanceId("I");
  instance.account = AccountId("A");
  instance.node = NodeId("local");
  instance.name = "训练 🚀";
  instance.state = InstanceState::kRunning;
  instance.image = "a";
  instance.substituted = true;
  instance.command = "echo 'x'\n\"y\"";
  instance.env = {{"K", "a\nb"}, {"E", ""}};
  instance.ssh_keys = {"ssh-ed25519 A", "b"};
  instance.max_runtime_s = 60;
  instance.restart = RestartPolicy::kOnLoss;
  instance.slot = 4;
  instance.port = 20'004;
  instance.created_at = kNow;
  instance.run = RunId("R");
  batch.instances = {instance};
  RunRow run;
  run.id = RunId("R");
  run.instance = InstanceId("I");
  run.account = AccountId("A");
  run.state = RunState::kStopping;
  run.cards = {"GPU-1", "GPU-2"};
  run.signal = 9;
  run.stop = StopBy::kRule;
  run.ready_at = kNow;
  run.hold_micro = 5;
  batch.runs = {run};
  batch.tokens = {{"hash", AccountId("A"), kNow}};
  batch.access_keys = {{"AK1", AccountId("A"), "00ff", kNow}};
  batch.ssh_keys = {{"K", AccountId("A"), "laptop", "ssh-ed25519 A", kNow, false}};
  batch.balances = {{AccountId("A"), Book::kExternal, {}, -5},
                    {AccountId("A"), Book::kHeld, {}, 5},
                    {AccountId("A"), Book::kHeld, RunId("R"), 2},
                    {AccountId("A"), Book::kHeld, RunId("R"), 3, VoucherId("V")}};
  batch.prices = {{"RTX 3090", 1, kNow, 1'580'000, kNow, AccountId("A"), "spring"}};
  batch.vouchers = {{VoucherId("V"), AccountId("A"), 7, kNow, kNow, AccountId("A"), "course"}};
  AuditRow audit{1,          kNow, AccountId("A"), "安娜", "price.set",
                 "RTX 3090", "{}", "{}",           "why",  "r-1"};
  batch.audit = {audit};
  audit.seq = 2;
  audit.action = "user.disable";
  audit.target = "boris";
  batch.audit.push_back(audit);
  batch.card_facts = {{1, kNow, "granted", CardId("GPU-1"), NodeId("n"), "RTX 3090", AccountId("A"),
                       InstanceId("I"), RunId("R"), ""},
                      {2, kNow, "freed", CardId("GPU-1"), NodeId("n"), "RTX 3090", AccountId("A"),
                       InstanceId("I"), RunId("R"), ""}};
  batch.nodes = {{NodeId("n"), true, kNow, "new fans", kNow}};
  batch.cards = {{CardId("GPU-1"), true, "smells", "1 MiB in use", kNow}};
  batch.image_aliases = {{"course", "autodl/base:trixie", kNow}};
  batch.groups = {{GroupId("G"), "lab", 9'000'000, 5, kNow},
                  {GroupId("H"), "free", std::nullopt, 0, kNow}};
  batch.idempotency = {{AccountId("A"), "key", "hash", 202, "{\"x\":1}", kNow}};
  batch.nonces = {{"AK1", "nonce", kNow}};
  batch.events = {{1,
                   kNow,
                   "created",
                   AccountId("A"),
                   InstanceId("I"),
                   {},
                   Actor::kUser,
                   "{\"a\":1}",
                   "made",
                   "req"},
                  {2, kNow, "running", AccountId("A"), InstanceId("I"), RunId("R"),
                   Actor::kPlatform, "{}", "", ""}};
  batch.entries = {{1,
                    kNow,
                    AccountId("A"),
                    InstanceId("I"),
                    RunId("R"),
                    EntryKind::kHold,
                    Book::kWallet,
                    Book::kHeld,
                    5,
                    "start",
                    {}}};
  batch.intervals = {{RunId("R"), 1, kNow, 1'500, true, ""}};
  return batch;
}

TYPED_TEST(StoreContract, WhatWasCommittedIsLoaded) {
  const Batch batch = whole_batch();
  ASSERT_TRUE(this->fixture.get().commit(batch).ok());
  this->fixture.reopen();
  const auto loaded = this->fixture.get().load();
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  EXPECT_EQ(loaded->accounts, batch.accounts);
  EXPECT_EQ(loaded->instances, batch.instances);
  EXPECT_EQ(loaded->runs, batch.runs);
  EXPECT_EQ(loaded->tokens, batch.tokens);
  EXPECT_EQ(loaded->access_keys, batch.access_keys);
  EXPECT_EQ(loaded->ssh_keys, batch.ssh_keys);
  const auto by_voucher = [](const BalanceRow& a, const BalanceRow& b) {
    return std::tuple(a.run, a.voucher, to_string(a.book)) <
           std::tuple(b.run, b.voucher, to_string(b.book));
  };
  auto balances = loaded->balances;
  auto wrote = batch.balances;
  std::sort(balances.begin(), balances.end(), by_voucher);
  std::sort(wrote.begin(), wrote.end(), by_voucher);
  EXPECT_EQ(balances, wrote);
  EXPECT_EQ(loaded->idempotency, batch.idempotency);
  EXPECT_EQ(loaded->nonces, batch.nonces);
  EXPECT_EQ(loaded->intervals, batch.intervals);
  EXPECT_EQ(loaded->prices, batch.prices);
  EXPECT_EQ(loaded->vouchers, batch.vouchers);
  EXPECT_EQ(loaded->groups, batch.groups);
  EXPECT_EQ(loaded->last_event_seq, 2);
  EXPECT_EQ(loaded->last_entry_seq, 1);
  EXPECT_EQ(*this->fixture.get().events(AccountId("A"), {}, 0, 10), batch.events);
  EXPECT_EQ(*this->fixture.get().entries(AccountId("A"), InstanceId("I"), 0, 10), batch.entries);
}

TYPED_TEST(StoreContract, EpochGrowsAndClusterStays) {
  const auto first = this->fixture.get().load();
  this->fixture.reopen();
  const auto second = this->fixture.get().load();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_GT(second->epoch, first->epoch);
  EXPECT_EQ(second->cluster, first->cluster);
  EXPECT_FALSE(first->cluster.empty());
}

TYPED_TEST(StoreContract, RowsReplaceTheirLikes) {
  Batch batch = whole_batch();
  ASSERT_TRUE(this->fixture.get().commit(batch).ok());
  Batch change;
  change.runs = batch.runs;
  change.runs[0].state = RunState::kEnded;
  change.runs[0].stop.reset();
  change.runs[0].outcome = Outcome::kRule;
  change.balances = {{AccountId("A"), Book::kHeld, RunId("R"), 0},
                     {AccountId("A"), Book::kHeld, RunId("R"), 0, VoucherId("V")}};
  change.forget_nonces_before = kNow + std::chrono::seconds{1};
  change.forget_idempotency_before = kNow;  // not older: kept
  ASSERT_TRUE(this->fixture.get().commit(change).ok());
  const auto loaded = this->fixture.get().load();
  EXPECT_EQ(loaded->runs, change.runs);
  EXPECT_EQ(loaded->balances.size(), 2U);  // the hold is gone
  EXPECT_TRUE(loaded->nonces.empty());
  EXPECT_EQ(loaded->idempotency.size(), 1U);
}

TYPED_TEST(StoreContract, ASecondFactUnderOneKeyUndoesTheWholeBatch) {
  ASSERT_TRUE(this->fixture.get().commit(whole_batch()).ok());
  Batch again;
  again.accounts = {{AccountId("B"), "b", Role::kUser, kNow, 0, {}}};
  again.events = {whole_batch().events[1]};
  const auto got = this->fixture.get().commit(again);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), "duplicate_row");
  EXPECT_EQ(this->fixture.get().load()->accounts.size(), 1U);
}

TYPED_TEST(StoreContract, EventsArePagedAndFiltered) {
  Batch batch = whole_batch();
  batch.events.push_back(
      {3, kNow, "created", AccountId("A"), InstanceId("J"), {}, Actor::kUser, "{}", "", ""});
  batch.events.push_back(
      {4, kNow, "created", AccountId("B"), InstanceId("L"), {}, Actor::kUser, "{}", "", ""});
  ASSERT_TRUE(this->fixture.get().commit(batch).ok());
  const auto seqs = [&](const char* account, const char* instance, std::int64_t after,
                        std::size_t limit) {
    std::vector<std::int64_t> out;
    const auto page =
        this->fixture.get().events(AccountId(account), InstanceId(instance), after, limit);
    for (const auto& event : *page) out.push_back(event.seq);
    return out;
  };
  using V = std::vector<std::int64_t>;
  EXPECT_EQ(seqs("A", "", 0, 10), (V{1, 2, 3}));
  EXPECT_EQ(seqs("A", "", 1, 1), (V{2}));
  EXPECT_EQ(seqs("A", "J", 0, 10), (V{3}));
  EXPECT_EQ(seqs("B", "J", 0, 10), (V{}));
  EXPECT_EQ(seqs("", "", 2, 10), (V{3, 4}));
}

TYPED_TEST(StoreContract, OperatorsRowsAreLoadedAndTheirFactsPaged) {
  const Batch batch = whole_batch();
  auto& store = this->fixture.get();
  ASSERT_TRUE(store.commit(batch).ok());
  this->fixture.reopen();
  const auto loaded = this->fixture.get().load();
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  EXPECT_EQ(loaded->nodes, batch.nodes);
  EXPECT_EQ(loaded->cards, batch.cards);
  EXPECT_EQ(loaded->image_aliases, batch.image_aliases);
  EXPECT_EQ(loaded->last_audit_seq, 2);
  EXPECT_EQ(loaded->last_card_fact_seq, 2);
  const auto seqs = [&](const AuditFilter& filter) {
    std::vector<std::int64_t> out;
    const auto rows = this->fixture.get().audit(filter);
    for (const auto& row : *rows) out.push_back(row.seq);
    return out;
  };
  using V = std::vector<std::int64_t>;
  EXPECT_EQ(seqs({}), (V{2, 1}));
  EXPECT_EQ(seqs({.before = 2}), (V{1}));
  EXPECT_EQ(seqs({.action = "user."}), (V{2}));
  EXPECT_EQ(seqs({.action = "user"}), (V{}));
  EXPECT_EQ(seqs({.action = "price.set"}), (V{1}));
  EXPECT_EQ(seqs({.target = "boris"}), (V{2}));
  EXPECT_EQ(seqs({.actor = AccountId("B")}), (V{}));
  EXPECT_EQ(seqs({.limit = 1}), (V{2}));
  EXPECT_EQ((*this->fixture.get().audit({.limit = 1}))[0], batch.audit[1]);
  const auto facts = this->fixture.get().card_facts(CardId("GPU-1"), 2, 10);
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(*facts, (std::vector<CardFact>{batch.card_facts[0]}));
  EXPECT_TRUE(this->fixture.get().card_facts(CardId("GPU-2"), {}, 10)->empty());
  Batch again;
  again.audit = {batch.audit[0]};
  EXPECT_EQ(this->fixture.get().commit(again).error().code(), "duplicate_row");
}

TYPED_TEST(StoreContract, StatementsAreFilteredAndPaged) {
  Batch batch;
  const auto add = [&](const char* account, const char* instance, EntryKind kind, int minute) {
    LedgerEntry entry;
    entry.seq = static_cast<std::int64_t>(batch.entries.size()) + 1;
    entry.at = kNow + std::chrono::minutes{minute};
    entry.account = AccountId(account);
    entry.instance = InstanceId(instance);
    entry.kind = kind;
    entry.amount_micro = 1;
    batch.entries.push_back(entry);
  };
  add("A", "", EntryKind::kVoucher, 0);
  add("A", "I", EntryKind::kHold, 1);
  add("A", "I", EntryKind::kCharge, 2);
  add("B", "K", EntryKind::kCharge, 2);
  add("A", "J", EntryKind::kCharge, 3);
  ASSERT_TRUE(this->fixture.get().commit(batch).ok());
  const auto seqs = [&](const EntryFilter& filter) {
    std::vector<std::int64_t> out;
    const auto rows = this->fixture.get().statement(filter);
    for (const auto& row : *rows) out.push_back(row.seq);
    return out;
  };
  using V = std::vector<std::int64_t>;
  EntryFilter all;
  all.account = AccountId("A");
  EXPECT_EQ(seqs(all), (V{1, 2, 3, 5}));
  EntryFilter filter = all;
  filter.holds = false;
  EXPECT_EQ(seqs(filter), (V{1, 3, 5}));
  filter.instance = InstanceId("I");
  EXPECT_EQ(seqs(filter), (V{3}));
  filter = all;
  filter.kind = EntryKind::kCharge;
  EXPECT_EQ(seqs(filter), (V{3, 5}));
  filter = all;
  filter.from = kNow + std::chrono::minutes{1};
  filter.to = kNow + std::chrono::minutes{3};
  EXPECT_EQ(seqs(filter), (V{2, 3}));
  filter = all;
  filter.limit = 2;
  EXPECT_EQ(seqs(filter), (V{1, 2}));
  filter.after = 2;
  EXPECT_EQ(seqs(filter), (V{3, 5}));
}

// A store that the first release wrote is taken over with all that it holds.
TEST(SqliteStore_Migration, FromSchema1_KeepsAllRows) {
  TempFolder folder;
  std::ifstream file(ADL_STORE_TESTING "/schema_1.sql");
  const std::string sql((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ASSERT_FALSE(sql.empty());
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open(folder.file("db").c_str(), &raw), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(raw, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(raw);
  sqlite3_close(raw);
  ManualClock clock;
  SeededRandom random{1};
  const auto store = SqliteStore::open(folder.file("db"), clock, random);
  ASSERT_TRUE(store.ok()) << store.error().message();
  const auto loaded = (*store)->load();
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  const Batch wrote = whole_batch();
  ASSERT_EQ(loaded->accounts.size(), 1U);
  EXPECT_EQ(loaded->accounts[0].name, wrote.accounts[0].name);
  EXPECT_TRUE(loaded->accounts[0].group.empty());
  EXPECT_EQ(loaded->instances, wrote.instances);
  EXPECT_EQ(loaded->runs, wrote.runs);
  EXPECT_EQ(loaded->intervals, wrote.intervals);
  EXPECT_EQ(*(*store)->entries(AccountId("A"), {}, 0, 10), wrote.entries);
  EXPECT_TRUE(loaded->vouchers.empty());
  const auto ledger = Ledger::load(loaded->balances, loaded->last_entry_seq);
  ASSERT_TRUE(ledger.ok()) << ledger.error().message();
  EXPECT_EQ(ledger->held_for(RunId("R"), {}), 5);
}

TEST(SqliteStore_Open, OneControlPerStore) {
  SqliteFixture fixture;
  const auto second = SqliteStore::open(fixture.folder.file("db"), fixture.clock, fixture.random);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), "store_in_use");
}

TEST(SqliteStore_Open, RefusesANewerSchema) {
  SqliteFixture fixture;
  fixture.store.reset();
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open(fixture.folder.file("db").c_str(), &raw), SQLITE_OK);
  sqlite3_exec(raw, "PRAGMA user_version=99", nullptr, nullptr, nullptr);
  sqlite3_close(raw);
  const auto got = SqliteStore::open(fixture.folder.file("db"), fixture.clock, fixture.random);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), "store_too_new");
}

TEST(SqliteStore_Open, FilesAreForTheOwnerAlone) {
  SqliteFixture fixture;
  ASSERT_TRUE(fixture.store->load().ok());
  for (const char* name : {"db", "db-wal", "db.lock"}) {
    struct stat about{};
    ASSERT_EQ(::stat(fixture.folder.file(name).c_str(), &about), 0) << name;
    EXPECT_EQ(about.st_mode & 0777, 0600U) << name;
  }
}

TEST(MemoryStore_Fault, FailsOnceAtTheNthCommit) {
  MemoryStore store("c");
  Batch batch;
  batch.accounts = {{AccountId("A"), "a", Role::kUser, kNow, 0, {}}};
  store.fail_at(2, false);
  EXPECT_TRUE(store.commit({}).ok());
  EXPECT_FALSE(store.commit(batch).ok());
  EXPECT_TRUE(store.load()->accounts.empty());
  store.fail_at(1, true);
  EXPECT_FALSE(store.commit(batch).ok());
  EXPECT_EQ(store.load()->accounts.size(), 1U);
}

TEST(SecretBox_Seal, OpensOnlyWithItsKeyAndContext) {
  TempFolder folder;
  SeededRandom random(3);
  const auto box = SecretBox::load_or_create(folder.file("key"), random);
  ASSERT_TRUE(box.ok()) << box.error().message();
  const std::string sealed = box->seal("adl_sk_x", "AK1", random);
  EXPECT_EQ(sealed.find("adl_sk"), std::string::npos);
  const auto again = SecretBox::load_or_create(folder.file("key"), random);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again->open(sealed, "AK1"), "adl_sk_x");
  EXPECT_FALSE(again->open(sealed, "AK2").ok());
  EXPECT_FALSE(again->open("zz", "AK1").ok());
  EXPECT_FALSE(again->open("", "AK1").ok());
  EXPECT_FALSE(SecretBox({}).open(sealed, "AK1").ok());
  ::chmod(folder.file("key").c_str(), 0644);
  EXPECT_FALSE(SecretBox::load_or_create(folder.file("key"), random).ok());
  EXPECT_EQ(hash_of_token("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace autodl
