// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "store/backup.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>

#include "base/unique_fd.hpp"
#include "store/migrations.hpp"

namespace autodl {
namespace {

constexpr std::uint64_t kJump = 1'000'000;

class Database {
 public:
  ~Database() { sqlite3_close(handle_); }
  Status open(const std::string& path, int flags) {
    path_ = path;
    if (sqlite3_open_v2(path.c_str(), &handle_, flags, nullptr) != SQLITE_OK) return failed("open");
    sqlite3_busy_timeout(handle_, 10'000);
    return {};
  }
  Status execute(const std::string& sql) {
    if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return {};
    return failed("write");
  }
  // The first column of the first row.
  Result<std::string> value(const std::string& sql) {
    sqlite3_stmt* query = nullptr;
    if (sqlite3_prepare_v2(handle_, sql.c_str(), -1, &query, nullptr) != SQLITE_OK) {
      return failed("read");
    }
    const bool row = sqlite3_step(query) == SQLITE_ROW;
    const auto* text = row ? sqlite3_column_text(query, 0) : nullptr;
    const std::string out = text == nullptr ? "" : reinterpret_cast<const char*>(text);
    sqlite3_finalize(query);
    if (!row) return failed("read");
    return out;
  }
  Status copy_from(Database& source) {
    auto* copy = sqlite3_backup_init(handle_, "main", source.handle_, "main");
    if (copy == nullptr) return failed("copy");
    // All pages at once: one read transaction, so commits beside it need no new beginning.
    const int code = sqlite3_backup_step(copy, -1);
    sqlite3_backup_finish(copy);
    if (code != SQLITE_DONE) return failed("copy");
    return {};
  }
  Error failed(const char* action) const {
    return Error(ErrorKind::kUnavailable, "store_failed",
                 fmt::format("{} '{}': {}", action, path_, sqlite3_errmsg(handle_)));
  }

 private:
  sqlite3* handle_ = nullptr;
  std::string path_;
};

Error bad_backup(const std::string& path, const std::string& why) {
  return Error(ErrorKind::kInvalid, "bad_backup", fmt::format("'{}' is no backup: {}", path, why),
               "name a file that `autodl admin backup` wrote");
}

Result<StoreFacts> facts_of(Database& database, const std::string& path) {
  const auto sound = database.value("PRAGMA integrity_check");
  if (!sound.ok()) return bad_backup(path, sound.error().message());
  if (*sound != "ok") return bad_backup(path, *sound);
  const auto cluster = database.value("SELECT cluster FROM meta");
  const auto epoch = database.value("SELECT epoch FROM meta");
  const auto schema = database.value("PRAGMA user_version");
  if (!cluster.ok() || !epoch.ok() || !schema.ok()) return bad_backup(path, "it has no store");
  StoreFacts facts{*cluster, std::stoull(*epoch), std::stoll(*schema)};
  const auto newest = static_cast<std::int64_t>(std::size(store_detail::kMigrations));
  if (facts.schema > newest) {
    return Error(
        ErrorKind::kUnsupported, "store_too_new",
        fmt::format("'{}' has schema {}, this program knows up to {}", path, facts.schema, newest),
        "restore it with the newer program");
  }
  return facts;
}

Status sync_path(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid() || ::fsync(file.get()) != 0) return errno_error("sync '" + path + "'", errno);
  return {};
}

Status copy_database(Database& source, const std::string& to) {
  UniqueFd made(::open(to.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!made.valid()) return errno_error(fmt::format("make '{}'", to), errno);
  made.reset();
  Database copy;
  Status done = copy.open(to, SQLITE_OPEN_READWRITE);
  if (done.ok()) done = copy.copy_from(source);
  // A file by itself, without the -wal beside it that the store has.
  if (done.ok()) done = copy.execute("PRAGMA journal_mode=DELETE");
  if (done.ok()) done = sync_path(to);
  if (!done.ok()) ::unlink(to.c_str());
  return done;
}

// What is at path now; nothing where there is none. It is brought into its one file.
Status settle_present(const std::string& path, StoreFacts& facts) {
  std::error_code failure;
  if (!std::filesystem::exists(path, failure)) return {};
  Database present;
  ADL_TRY_STATUS(present.open(path, SQLITE_OPEN_READWRITE));
  const auto read = facts_of(present, path);
  if (!read.ok()) return {};  // damaged: that is why one restores
  facts = *read;
  return present.execute("PRAGMA journal_mode=DELETE");
}

Status mark_restored(const std::string& path, std::uint64_t epoch, const Clock& clock) {
  Database copy;
  ADL_TRY_STATUS(copy.open(path, SQLITE_OPEN_READWRITE));
  const auto at = clock.utc_now().time_since_epoch().count();
  ADL_TRY_STATUS(copy.execute("BEGIN IMMEDIATE"));
  ADL_TRY_STATUS(copy.execute(fmt::format("UPDATE meta SET epoch = {}", epoch)));
  ADL_TRY_STATUS(copy.execute(fmt::format(
      "INSERT INTO events(seq, at, type, account, instance, run, actor, data, message, request_id) "
      "SELECT coalesce(max(seq), 0) + {}, {}, 'restored', '', '', '', 'operator', '{{}}', "
      "'the store was restored from a backup', '' FROM events",
      kJump, at)));
  ADL_TRY_STATUS(copy.execute("COMMIT"));
  return sync_path(path);
}

}  // namespace

Status backup_store(const std::string& from, const std::string& to) {
  Database source;
  ADL_TRY_STATUS(source.open(from, SQLITE_OPEN_READONLY));
  return copy_database(source, to);
}

Result<StoreFacts> restore_store(const std::string& backup, const std::string& path,
                                 const Clock& clock) {
  const UniqueFd lock(::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) return errno_error(fmt::format("open '{}.lock'", path), errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return Error(ErrorKind::kConflict, "store_in_use",
                 fmt::format("a control has the store '{}' open", path), "stop it first");
  }
  Database source;
  if (!source.open(backup, SQLITE_OPEN_READONLY).ok()) return bad_backup(backup, "can't open it");
  ADL_TRY(facts, facts_of(source, backup));
  StoreFacts present;
  ADL_TRY_STATUS(settle_present(path, present));
  if (!present.cluster.empty() && present.cluster != facts.cluster) {
    return Error(ErrorKind::kConflict, "other_cluster",
                 fmt::format("'{}' is of cluster {}, the store here of {}", backup, facts.cluster,
                             present.cluster),
                 "nodes here would refuse it; move the store away if that is meant");
  }
  const std::string fresh = path + ".restoring";
  ::unlink(fresh.c_str());
  ADL_TRY_STATUS(copy_database(source, fresh));
  facts.epoch = std::max(facts.epoch, present.epoch) + kJump;
  ADL_TRY_STATUS(mark_restored(fresh, facts.epoch, clock));
  const auto folder = std::filesystem::path(path).parent_path().string();
  struct stat owner{};
  if (::stat(folder.c_str(), &owner) != 0 ||
      ::chown(fresh.c_str(), owner.st_uid, owner.st_gid) != 0 ||
      ::fchown(lock.get(), owner.st_uid, owner.st_gid) != 0) {
    return errno_error(fmt::format("give '{}' to its user", fresh), errno);
  }
  const std::string old = path + ".before-restore";
  ::unlink(old.c_str());
  if (::link(path.c_str(), old.c_str()) != 0 && errno != ENOENT) {
    return errno_error(fmt::format("keep '{}'", old), errno);
  }
  for (const char* beside : {"-wal", "-shm", "-journal"}) ::unlink((path + beside).c_str());
  if (::rename(fresh.c_str(), path.c_str()) != 0) {
    return errno_error(fmt::format("put '{}' in place", path), errno);
  }
  ADL_TRY_STATUS(sync_path(folder));
  return facts;
}

}  // namespace autodl
