// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <iterator>

#include "base/crash_point.hpp"
#include "base/unique_fd.hpp"
#include "store/migrations.hpp"
#include "store/row_fields.hpp"

namespace autodl {

using store_detail::from_word;
using store_detail::kMigrations;
using store_detail::Table;
using store_detail::walk;

namespace {

namespace json = boost::json;

// ---- columns

// Collects the columns' names: SQL is made from them.
struct NameWalker {
  std::vector<std::string> names;
  void operator()(const char* name, auto&) { names.emplace_back(name); }
};

// Binds one row's values to a statement, in the order of the columns.
struct Binder {
  sqlite3_stmt* statement;
  int at = 0;

  void text(std::string_view value) {
    sqlite3_bind_text(statement, at, value.data(), static_cast<int>(value.size()),
                      SQLITE_TRANSIENT);
  }
  void bind(std::int64_t value) { sqlite3_bind_int64(statement, at, value); }
  void bind(bool value) { sqlite3_bind_int64(statement, at, value ? 1 : 0); }
  void bind(const std::string& value) { text(value); }
  void bind(UtcTime value) { bind(std::int64_t{value.time_since_epoch().count()}); }
  template <class Tag>
  void bind(const Id<Tag>& value) {
    text(value.str());
  }
  template <class E>
    requires std::is_enum_v<E>
  void bind(E value) {
    text(to_string(value));
  }
  template <class T>
  void bind(const std::optional<T>& value) {
    if (value) {
      bind(*value);
    } else {
      sqlite3_bind_null(statement, at);
    }
  }
  void bind(const std::vector<std::string>& value) {
    text(json::serialize(json::value_from(value)));
  }
  void bind(const std::map<std::string, std::string>& value) {
    text(json::serialize(json::value_from(value)));
  }
  void operator()(const char*, const auto& value) {
    ++at;
    bind(value);
  }
};

// Reads one row's values; ok becomes false where a column holds what no program of ours wrote.
struct Taker {
  sqlite3_stmt* statement;
  int at = 0;
  bool ok = true;

  std::string_view text() {
    const auto* data = sqlite3_column_text(statement, at);
    const int size = sqlite3_column_bytes(statement, at);
    return data == nullptr ? std::string_view()
                           : std::string_view(reinterpret_cast<const char*>(data),
                                              static_cast<std::size_t>(size));
  }
  void take(std::int64_t& out) { out = sqlite3_column_int64(statement, at); }
  void take(bool& out) { out = sqlite3_column_int64(statement, at) != 0; }
  void take(std::string& out) { out = std::string(text()); }
  void take(UtcTime& out) {
    out = UtcTime(std::chrono::microseconds(sqlite3_column_int64(statement, at)));
  }
  template <class Tag>
  void take(Id<Tag>& out) {
    out = Id<Tag>(std::string(text()));
  }
  template <class E>
    requires std::is_enum_v<E>
  void take(E& out) {
    ok = from_word(text(), out) && ok;
  }
  template <class T>
  void take(std::optional<T>& out) {
    if (sqlite3_column_type(statement, at) != SQLITE_NULL) take(out.emplace());
  }
  template <class T>
  void take_json(T& out) {
    boost::system::error_code failure;
    const json::value parsed = json::parse(text(), failure);
    if (failure) {
      ok = false;
      return;
    }
    const auto value = json::try_value_to<T>(parsed);
    ok = ok && value.has_value();
    if (value.has_value()) out = *value;
  }
  void take(std::vector<std::string>& out) { take_json(out); }
  void take(std::map<std::string, std::string>& out) { take_json(out); }
  void operator()(const char*, auto& value) {
    take(value);
    ++at;
  }
};

template <class Row>
const std::vector<std::string>& columns_of() {
  static const std::vector<std::string> names = [] {
    NameWalker walker;
    const Row row{};
    walk(walker, row, static_cast<const Row*>(nullptr));
    return walker.names;
  }();
  return names;
}

template <class Row>
const std::string& insert_sql() {
  static const std::string sql = [] {
    const auto& names = columns_of<Row>();
    std::string marks = "?";
    std::string updates;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (i > 0) marks += ",?";
      updates += fmt::format("{}{}=excluded.{}", i > 0 ? "," : "", names[i], names[i]);
    }
    std::string text = fmt::format("INSERT INTO {}({}) VALUES({})", Table<Row>::kName,
                                   fmt::join(names, ","), marks);
    if (!Table<Row>::kAppend) {
      text += fmt::format(" ON CONFLICT({}) DO UPDATE SET {}", Table<Row>::kKey, updates);
    }
    return text;
  }();
  return sql;
}

template <class Row>
std::string select_sql(std::string_view rest) {
  return fmt::format("SELECT {} FROM {} {}", fmt::join(columns_of<Row>(), ","), Table<Row>::kName,
                     rest);
}

}  // namespace

// ---- the database

struct SqliteStore::Impl {
  UniqueFd lock;
  sqlite3* database = nullptr;
  std::map<std::string, sqlite3_stmt*> prepared;

  ~Impl() {
    for (const auto& [sql, statement] : prepared) sqlite3_finalize(statement);
    sqlite3_close(database);
  }

  Error failed(std::string_view action) const {
    return Error(ErrorKind::kInternal, "store_failed",
                 fmt::format("{}: {}", action, sqlite3_errmsg(database)));
  }
  Status execute(const char* sql) {
    if (sqlite3_exec(database, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return failed(sql);
    return {};
  }
  // The statement, reset and unbound; null: an error.
  sqlite3_stmt* statement(const std::string& sql) {
    auto& slot = prepared[sql];
    if (slot == nullptr && sqlite3_prepare_v3(database, sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT,
                                              &slot, nullptr) != SQLITE_OK) {
      return nullptr;
    }
    sqlite3_reset(slot);
    sqlite3_clear_bindings(slot);
    return slot;
  }
  Result<std::int64_t> number(const std::string& sql) {
    auto* query = statement(sql);
    if (query == nullptr || sqlite3_step(query) != SQLITE_ROW) return failed(sql);
    const std::int64_t value = sqlite3_column_int64(query, 0);
    sqlite3_reset(query);
    return value;
  }
  template <class Row>
  Status insert(const std::vector<Row>& rows) {
    for (const auto& row : rows) {
      auto* query = statement(insert_sql<Row>());
      if (query == nullptr) return failed(insert_sql<Row>());
      Binder binder{query};
      walk(binder, row, static_cast<const Row*>(nullptr));
      const int code = sqlite3_step(query);
      sqlite3_reset(query);
      if (code == SQLITE_DONE) continue;
      const int extended = sqlite3_extended_errcode(database);
      if (extended == SQLITE_CONSTRAINT_PRIMARYKEY || extended == SQLITE_CONSTRAINT_ROWID) {
        return Error(ErrorKind::kInternal, "duplicate_row",
                     fmt::format("a second row in {}", Table<Row>::kName));
      }
      return failed(fmt::format("write {}", Table<Row>::kName));
    }
    return {};
  }
  template <class Row>
  Status select(const std::string& rest, std::vector<Row>& out, const auto&... bound) {
    const std::string sql = select_sql<Row>(rest);
    auto* query = statement(sql);
    if (query == nullptr) return failed(sql);
    Binder binder{query};
    (binder("", bound), ...);
    int code = SQLITE_DONE;
    while ((code = sqlite3_step(query)) == SQLITE_ROW) {
      Taker taker{query};
      walk(taker, out.emplace_back(), static_cast<const Row*>(nullptr));
      if (!taker.ok) {
        sqlite3_reset(query);
        return Error(
            ErrorKind::kInternal, "store_broken",
            fmt::format("table {} holds a value this program does not know", Table<Row>::kName));
      }
    }
    sqlite3_reset(query);
    if (code != SQLITE_DONE) return failed(sql);
    return {};
  }
  template <class Row>
  Result<std::vector<Row>> select_range(const AccountId& account, const InstanceId& instance,
                                        std::int64_t after, std::size_t limit) {
    std::vector<Row> rows;
    const auto count = static_cast<std::int64_t>(limit);
    Status done;
    if (!instance.empty()) {
      done = select<Row>(
          "WHERE seq > ? AND instance = ? AND (? = '' OR account = ?) "
          "ORDER BY seq LIMIT ?",
          rows, after, instance, account, account, count);
    } else if (!account.empty()) {
      done = select<Row>("WHERE seq > ? AND account = ? ORDER BY seq LIMIT ?", rows, after, account,
                         count);
    } else {
      done = select<Row>("WHERE seq > ? ORDER BY seq LIMIT ?", rows, after, count);
    }
    if (!done.ok()) return done.error();
    return rows;
  }

  Status take_lock(const std::string& path);
  Status open_database(const std::string& path);
  Status migrate(const std::string& path, const std::string& cluster);
  Status write(const Batch& batch);
  Status forget(const Batch& batch);
};

Status SqliteStore::Impl::take_lock(const std::string& path) {
  const std::string name = path + ".lock";
  lock.reset(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) return errno_error(fmt::format("open '{}'", name), errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return Error(ErrorKind::kConflict, "store_in_use",
                 fmt::format("another control has the store '{}' open", path),
                 "stop it first: there is one active control per store");
  }
  return {};
}

Status SqliteStore::Impl::open_database(const std::string& path) {
  UniqueFd made(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));  // 0600, not umask's
  if (!made.valid()) return errno_error(fmt::format("open '{}'", path), errno);
  made.reset();
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  if (sqlite3_open_v2(path.c_str(), &database, flags, nullptr) != SQLITE_OK) {
    return failed(fmt::format("open '{}'", path));
  }
  sqlite3_busy_timeout(database, 10'000);  // a backup may hold it for a moment
  ADL_TRY_STATUS(execute("PRAGMA journal_mode=WAL"));
  ADL_TRY_STATUS(execute("PRAGMA synchronous=FULL"));
  return execute("PRAGMA foreign_keys=ON");
}

Status SqliteStore::Impl::migrate(const std::string& path, const std::string& cluster) {
  ADL_TRY(version, number("PRAGMA user_version"));
  const auto newest = static_cast<std::int64_t>(std::size(kMigrations));
  if (version > newest) {
    return Error(ErrorKind::kUnsupported, "store_too_new",
                 fmt::format("the store '{}' has schema {}, this program knows up to {}", path,
                             version, newest),
                 "run the newer program; stores are not taken back to older schemas");
  }
  for (std::int64_t next = version; next < newest; ++next) {
    ADL_TRY_STATUS(execute("BEGIN IMMEDIATE"));
    Status done = execute(kMigrations[next]);
    if (done.ok() && next == 0) {
      done = execute(fmt::format("CREATE TABLE meta(cluster TEXT NOT NULL, epoch INTEGER NOT NULL) "
                                 "STRICT; INSERT INTO meta VALUES('{}', 0)",
                                 cluster)
                         .c_str());
    }
    if (done.ok()) done = execute(fmt::format("PRAGMA user_version={}", next + 1).c_str());
    if (done.ok()) done = execute("COMMIT");
    if (!done.ok()) {
      if (sqlite3_get_autocommit(database) == 0) (void)execute("ROLLBACK");
      return done.error().context(fmt::format("migrate '{}' to schema {}", path, next + 1));
    }
  }
  return {};
}

Status SqliteStore::Impl::forget(const Batch& batch) {
  const auto erase = [&](const char* sql, const std::optional<UtcTime>& before) -> Status {
    if (!before) return {};
    auto* query = statement(sql);
    if (query == nullptr) return failed(sql);
    Binder binder{query};
    binder("", *before);
    const int code = sqlite3_step(query);
    sqlite3_reset(query);
    if (code != SQLITE_DONE) return failed(sql);
    return {};
  };
  ADL_TRY_STATUS(erase("DELETE FROM nonces WHERE at < ?", batch.forget_nonces_before));
  ADL_TRY_STATUS(erase("DELETE FROM idempotency WHERE at < ?", batch.forget_idempotency_before));
  for (const auto& row : batch.balances) {
    if ((row.run.empty() && row.voucher.empty()) || row.amount_micro != 0) continue;
    auto* query =
        statement("DELETE FROM ledger_balances WHERE account=? AND book=? AND run=? AND voucher=?");
    if (query == nullptr) return failed("forget a hold");
    Binder binder{query};
    binder("", row.account);
    binder("", row.book);
    binder("", row.run);
    binder("", row.voucher);
    const int code = sqlite3_step(query);
    sqlite3_reset(query);
    if (code != SQLITE_DONE) return failed("forget a hold");
  }
  return {};
}

Status SqliteStore::Impl::write(const Batch& batch) {
  ADL_TRY_STATUS(insert(batch.accounts));
  ADL_TRY_STATUS(insert(batch.instances));
  ADL_TRY_STATUS(insert(batch.runs));
  ADL_TRY_STATUS(insert(batch.tokens));
  ADL_TRY_STATUS(insert(batch.access_keys));
  ADL_TRY_STATUS(insert(batch.ssh_keys));
  ADL_TRY_STATUS(insert(batch.balances));
  ADL_TRY_STATUS(insert(batch.idempotency));
  ADL_TRY_STATUS(insert(batch.nonces));
  ADL_TRY_STATUS(insert(batch.events));
  ADL_TRY_STATUS(insert(batch.entries));
  ADL_TRY_STATUS(insert(batch.intervals));
  ADL_TRY_STATUS(insert(batch.prices));
  ADL_TRY_STATUS(insert(batch.vouchers));
  ADL_TRY_STATUS(insert(batch.groups));
  ADL_TRY_STATUS(insert(batch.audit));
  ADL_TRY_STATUS(insert(batch.card_facts));
  ADL_TRY_STATUS(insert(batch.nodes));
  ADL_TRY_STATUS(insert(batch.cards));
  ADL_TRY_STATUS(insert(batch.image_aliases));
  return forget(batch);
}

SqliteStore::SqliteStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SqliteStore::~SqliteStore() = default;

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const std::string& path, const Clock& clock,
                                                       Random& random) {
  auto impl = std::make_unique<Impl>();
  ADL_TRY_STATUS(impl->take_lock(path));
  ADL_TRY_STATUS(impl->open_database(path));
  ADL_TRY_STATUS(impl->migrate(path, UlidGenerator(clock, random).next()));
  return std::unique_ptr<SqliteStore>(new SqliteStore(std::move(impl)));
}

Result<Snapshot> SqliteStore::load() {
  Snapshot out;
  ADL_TRY_STATUS(impl_->execute("UPDATE meta SET epoch = epoch + 1"));
  ADL_TRY(epoch, impl_->number("SELECT epoch FROM meta"));
  out.epoch = static_cast<std::uint64_t>(epoch);
  auto* query = impl_->statement("SELECT cluster FROM meta");
  if (query == nullptr || sqlite3_step(query) != SQLITE_ROW) return impl_->failed("read meta");
  out.cluster = std::string(Taker{query}.text());
  sqlite3_reset(query);
  ADL_TRY_STATUS(impl_->select("ORDER BY id", out.accounts));
  ADL_TRY_STATUS(impl_->select("ORDER BY id", out.instances));
  ADL_TRY_STATUS(impl_->select("ORDER BY id", out.runs));
  ADL_TRY_STATUS(impl_->select("", out.tokens));
  ADL_TRY_STATUS(impl_->select("", out.access_keys));
  ADL_TRY_STATUS(impl_->select("ORDER BY id", out.ssh_keys));
  ADL_TRY_STATUS(impl_->select("", out.balances));
  ADL_TRY_STATUS(impl_->select("", out.idempotency));
  ADL_TRY_STATUS(impl_->select("", out.nonces));
  ADL_TRY_STATUS(impl_->select("ORDER BY run, number", out.intervals));
  ADL_TRY_STATUS(impl_->select("ORDER BY number", out.prices));
  ADL_TRY_STATUS(impl_->select("ORDER BY id", out.vouchers));
  ADL_TRY_STATUS(impl_->select("ORDER BY id", out.groups));
  ADL_TRY_STATUS(impl_->select("ORDER BY id", out.nodes));
  ADL_TRY_STATUS(impl_->select("ORDER BY id", out.cards));
  ADL_TRY_STATUS(impl_->select("ORDER BY alias", out.image_aliases));
  ADL_TRY(last_event, impl_->number("SELECT coalesce(max(seq), 0) FROM events"));
  ADL_TRY(last_entry, impl_->number("SELECT coalesce(max(seq), 0) FROM ledger_entries"));
  ADL_TRY(last_audit, impl_->number("SELECT coalesce(max(seq), 0) FROM audit"));
  ADL_TRY(last_fact, impl_->number("SELECT coalesce(max(seq), 0) FROM card_facts"));
  out.last_audit_seq = last_audit;
  out.last_card_fact_seq = last_fact;
  out.last_event_seq = last_event;
  out.last_entry_seq = last_entry;
  return out;
}

Status SqliteStore::commit(const Batch& batch) {
  crash_point("store.before_commit");
  ADL_TRY_STATUS(impl_->execute("BEGIN IMMEDIATE"));
  Status done = impl_->write(batch);
  if (done.ok()) done = impl_->execute("COMMIT");
  if (!done.ok()) {
    if (sqlite3_get_autocommit(impl_->database) == 0) (void)impl_->execute("ROLLBACK");
    return done;
  }
  crash_point("store.after_commit");
  return {};
}

Result<std::vector<Event>> SqliteStore::events(const AccountId& account, const InstanceId& instance,
                                               std::int64_t after, std::size_t limit) {
  return impl_->select_range<Event>(account, instance, after, limit);
}

Result<std::vector<LedgerEntry>> SqliteStore::entries(const AccountId& account,
                                                      const InstanceId& instance,
                                                      std::int64_t after, std::size_t limit) {
  return impl_->select_range<LedgerEntry>(account, instance, after, limit);
}

Result<std::vector<LedgerEntry>> SqliteStore::statement(const EntryFilter& filter) {
  std::vector<LedgerEntry> rows;
  const auto kind = filter.kind ? std::string(to_string(*filter.kind)) : std::string();
  const std::int64_t from = filter.from ? filter.from->time_since_epoch().count() : INT64_MIN;
  const std::int64_t to = filter.to ? filter.to->time_since_epoch().count() : INT64_MAX;
  ADL_TRY_STATUS(impl_->select<LedgerEntry>(
      "WHERE account = ? AND seq > ? AND (? = '' OR instance = ?) AND (? = '' OR kind = ?) "
      "AND at >= ? AND at < ? AND (? OR kind NOT IN ('hold', 'hold_release')) "
      "ORDER BY seq LIMIT ?",
      rows, filter.account, filter.after, filter.instance, filter.instance, kind, kind, from, to,
      filter.holds, static_cast<std::int64_t>(filter.limit)));
  return rows;
}

Result<std::vector<AuditRow>> SqliteStore::audit(const AuditFilter& filter) {
  std::vector<AuditRow> rows;
  const std::int64_t before = filter.before.value_or(INT64_MAX);
  const bool begins = filter.action.ends_with('.');
  ADL_TRY_STATUS(impl_->select<AuditRow>(
      "WHERE seq < ? AND (? = '' OR actor = ?) "
      "AND (? = '' OR action = ? OR (? AND substr(action, 1, ?) = ?)) "
      "AND (? = '' OR target = ?) ORDER BY seq DESC LIMIT ?",
      rows, before, filter.actor, filter.actor, filter.action, filter.action, begins,
      static_cast<std::int64_t>(filter.action.size()), filter.action, filter.target, filter.target,
      static_cast<std::int64_t>(filter.limit)));
  return rows;
}

Result<std::vector<CardFact>> SqliteStore::card_facts(const CardId& card,
                                                      std::optional<std::int64_t> before,
                                                      std::size_t limit) {
  std::vector<CardFact> rows;
  ADL_TRY_STATUS(impl_->select<CardFact>("WHERE card = ? AND seq < ? ORDER BY seq DESC LIMIT ?",
                                         rows, card, before.value_or(INT64_MAX),
                                         static_cast<std::int64_t>(limit)));
  return rows;
}

}  // namespace autodl
