// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Online backups of the store. A copy is made in control's own folder (no path comes from outside),
// fetched in parts, each with its hash, and removed. One copy at a time: making one removes the
// last.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <tuple>

#include "base/unique_fd.hpp"
#include "control/api/api.hpp"
#include "control/api/query_values.hpp"
#include "store/backup.hpp"
#include "wire/api_json.hpp"
#include "wire/api_signature.hpp"

namespace autodl {
namespace {

constexpr std::int64_t kCopyPartBytesMax = 8 << 20;

std::string copy_path(const std::string& database, const std::string& id) {
  return database + ".backup-" + id;
}

void remove_copies(const std::string& database) {
  const std::filesystem::path path(database);
  const std::string prefix = path.filename().string() + ".backup-";
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path(), failure)) {
    if (entry.path().filename().string().starts_with(prefix)) {
      std::filesystem::remove(entry.path(), failure);
    }
  }
}

Result<api::Backup> make_copy(const std::string& database, const std::string& id) {
  if (database.empty()) {
    return Error(ErrorKind::kUnsupported, "no_backup", "this store has no file to copy");
  }
  remove_copies(database);
  ADL_TRY_STATUS(backup_store(database, copy_path(database, id)));
  std::error_code failure;
  const auto size = std::filesystem::file_size(copy_path(database, id), failure);
  if (failure) return errno_error("look at the backup", failure.value());
  return api::Backup{id, static_cast<std::int64_t>(size)};
}

Result<std::string> read_part(const std::string& path, std::int64_t offset, std::int64_t length) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid()) {
    return Error(ErrorKind::kNotFound, "no_such_backup", "there is no such backup",
                 "make one; the next one made removes the last");
  }
  std::string bytes(static_cast<std::size_t>(length), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const auto got = ::pread(file.get(), bytes.data() + have, bytes.size() - have,
                             offset + static_cast<std::int64_t>(have));
    if (got < 0) return errno_error("read the backup", errno);
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

// The caller, where he is an operator; else the failure was answered.
Task<std::optional<Caller>> operator_only(Api* api, http::Exchange& exchange) {
  auto caller = co_await api->signed_in(exchange, BodySigning::kWhole);
  if (!caller) co_return std::nullopt;
  const auto may = require_operator(*caller);
  if (!may.ok()) {
    co_await api->fail(exchange, may.error());
    co_return std::nullopt;
  }
  co_return std::move(caller);
}

Task<void> make_backup(Api* api, http::Exchange& exchange) {
  auto caller = co_await operator_only(api, exchange);
  if (!caller) co_return;
  RequestContext context;
  context.request_id = exchange.request().request_id;
  context.actor = caller->actor();
  context.caller = caller->account;
  auto note = [context](ControlCore& core) { return core.note_backup(context); };
  const auto id = co_await api->runner.run(std::move(note));
  if (!id.ok()) {
    co_await api->fail(exchange, id.error());
    co_return;
  }
  auto copy = [database = api->options.database_path, name = *id] {
    return make_copy(database, name);
  };
  const auto made = co_await run_blocking(api->pool, std::move(copy));
  if (!made.ok()) {
    co_await api->fail(exchange, made.error());
    co_return;
  }
  std::ignore = co_await exchange.send(json_response(201, api::to_json(*made)));
}

Task<void> get_part(Api* api, http::Exchange& exchange) {
  const auto caller = co_await operator_only(api, exchange);
  if (!caller) co_return;
  const auto wish = [&]() -> Result<std::pair<std::int64_t, std::int64_t>> {
    ADL_TRY(query, http::Query::parse(exchange.request().query));
    ADL_TRY_STATUS(query.only({"offset", "length"}));
    ADL_TRY(offset, query_number(query, "offset", 0, 0, std::int64_t{1} << 46));
    ADL_TRY(length, query_number(query, "length", kCopyPartBytesMax, 1, kCopyPartBytesMax));
    return std::pair(offset, length);
  }();
  if (!wish.ok()) {
    co_await api->fail(exchange, wish.error());
    co_return;
  }
  const std::string id = exchange.request().param("id");
  auto read = [path = is_ulid(id) ? copy_path(api->options.database_path, id) : std::string(),
               offset = wish->first,
               length = wish->second] { return read_part(path, offset, length); };
  auto bytes = co_await run_blocking(api->pool, std::move(read));
  if (!bytes.ok()) {
    co_await api->fail(exchange, bytes.error());
    co_return;
  }
  http::Response response;
  response.headers.add("Content-Type", "application/octet-stream");
  response.headers.add("Cache-Control", "no-store");
  response.headers.add("X-Autodl-Part-SHA256", sha256_hex(*bytes));
  response.body = std::move(*bytes);
  std::ignore = co_await exchange.send(std::move(response));
}

}  // namespace

void add_backup_routes(http::Router& router, Api& api) {
  add_handler(router, api, "POST", "/api/v1/admin/backups", make_backup,
              About("makeBackup", "admin", "A copy of the store, while it is in use")
                  .says("Fetch it in parts. The master key is not in it: keep master.key of "
                        "control's folder elsewhere. The next backup removes this one.")
                  .for_operators()
                  .answers<api::Backup>(201, "The backup")
                  .rarely(501, "a store without a file"));
  add_handler(
      router, api, "GET", "/api/v1/admin/backups/{id}", get_part,
      About("getBackupPart", "admin", "Bytes of a backup; none at its end")
          .for_operators()
          .query("offset", number_schema(0, std::int64_t{1} << 46, 0), "from here on")
          .query("length", number_schema(1, kCopyPartBytesMax, kCopyPartBytesMax), "at most")
          .answers_with(200, "The bytes", "application/octet-stream", nullptr)
          .answer_header("X-Autodl-Part-SHA256", text_schema(), "of these bytes")
          .refuses({404, 422}));
}

}  // namespace autodl
