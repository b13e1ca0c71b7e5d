// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Files of an instance: list, read, make a folder. All paths are resolved by the file worker.
#include <algorithm>
#include <tuple>

#include "base/utf8.hpp"
#include "control/api/file_access.hpp"
#include "control/api/query_values.hpp"
#include "wire/api_json.hpp"

namespace autodl {
namespace {

constexpr std::int64_t kNanosPerMilli = 1'000'000;

Result<FileList> read_list_wish(const http::Request& request) {
  ADL_TRY(query, http::Query::parse(request.query));
  ADL_TRY_STATUS(query.only({"path", "recursive", "cursor", "limit"}));
  ADL_TRY(recursive, query_flag(query, "recursive"));
  ADL_TRY(limit, query_number(query, "limit", kListPageMax, 1, kListPageMax));
  FileList wish;
  wish.path = query.get("path").value_or("");
  wish.recursive = recursive;
  wish.cursor = query.get("cursor").value_or("");
  wish.limit = limit;
  ADL_TRY_STATUS(check_file_path(wish.path));
  return wish;
}

Result<FileGet> read_get_wish(const http::Request& request) {
  ADL_TRY(query, http::Query::parse(request.query));
  ADL_TRY_STATUS(query.only({"path", "offset", "length"}));
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max() / 2;
  ADL_TRY(offset, query_number(query, "offset", 0, 0, kMax));
  ADL_TRY(length, query_number(query, "length", kGetBytesMax, 1, kGetBytesMax));
  FileGet wish;
  wish.path = query.get("path").value_or("");
  wish.offset = offset;
  wish.length = length;
  wish.etag = std::string(request.headers.get("If-Match"));
  std::erase(wish.etag, '"');
  ADL_TRY_STATUS(check_file_path(wish.path));
  return wish;
}

api::FileItem to_api(const FileStat& stat) {
  api::FileItem item;
  item.path = to_valid_utf8(stat.path);
  item.type = std::string(to_string(stat.type));
  item.size = stat.size;
  item.mode = stat.mode;
  item.mtime_ms = stat.mtime_ns / kNanosPerMilli;
  if (stat.type == FileType::kSymlink) item.target = to_valid_utf8(stat.target);
  return item;
}

// Signs in, finds the instance, borrows a worker; answers the failure itself.
Task<std::unique_ptr<FileLoan>> begin(Api* api, http::Exchange& exchange,
                                      std::optional<Caller> caller) {
  if (!caller) co_return nullptr;
  auto instance =
      co_await instance_with_files(api, caller->account, exchange.request().param("id"));
  if (!instance.ok()) {
    co_await api->fail(exchange, instance.error());
    co_return nullptr;
  }
  auto worker = co_await borrow_worker(api, std::move(*instance));
  if (!worker.ok()) {
    co_await api->fail(exchange, worker.error());
    co_return nullptr;
  }
  co_return std::move(*worker);
}

Task<void> list_files(Api* api, http::Exchange& exchange) {
  auto caller = co_await api->signed_in(exchange, BodySigning::kWhole);
  if (!caller) co_return;
  auto wish = read_list_wish(exchange.request());
  if (!wish.ok()) {
    co_await api->fail(exchange, wish.error());
    co_return;
  }
  const auto worker = co_await begin(api, exchange, std::move(caller));
  if (!worker) co_return;
  api::FileList answer;
  answer.path = wish->path;
  auto list = co_await (*worker)->list(std::move(*wish));
  if (!list.ok()) {
    worker->look_at(list.error());
    co_await api->fail(exchange, list.error());
    co_return;
  }
  answer.type = std::string(to_string(list->end.type));
  for (const auto& stat : list->items) answer.items.push_back(to_api(stat));
  if (!list->end.next.empty()) answer.next = list->end.next;
  std::ignore = co_await exchange.send(json_response(200, api::to_json(answer)));
}

Task<void> read_file(Api* api, http::Exchange& exchange) {
  auto caller = co_await api->signed_in(exchange, BodySigning::kWhole);
  if (!caller) co_return;
  auto wish = read_get_wish(exchange.request());
  if (!wish.ok()) {
    co_await api->fail(exchange, wish.error());
    co_return;
  }
  const auto worker = co_await begin(api, exchange, std::move(caller));
  if (!worker) co_return;
  auto file = co_await (*worker)->get(std::move(*wish));
  if (!file.ok()) {
    worker->look_at(file.error());
    co_await api->fail(exchange, file.error());
    co_return;
  }
  http::Response response;
  response.headers.add("Content-Type", "application/octet-stream");
  response.headers.add("X-Content-Type-Options", "nosniff");
  response.headers.add("X-Autodl-Part-SHA256", file->end.sha256);
  response.headers.add("X-Autodl-File-Size", std::to_string(file->end.size));
  response.headers.add("ETag", "\"" + file->end.etag + "\"");
  response.body = std::move(file->bytes);
  std::ignore = co_await exchange.send(std::move(response));
}

Task<void> make_directory(Api* api, http::Exchange& exchange) {
  auto caller = co_await api->signed_in(exchange, BodySigning::kWhole);
  if (!caller) co_return;
  const auto body = api::from_json<api::DirectoryRequest>(exchange.request().body);
  const auto path_form = body.ok() ? check_file_path(body->path) : Status{};
  if (!body.ok() || !path_form.ok()) {
    co_await api->fail(exchange, body.ok() ? path_form.error() : body.error());
    co_return;
  }
  const auto worker = co_await begin(api, exchange, std::move(caller));
  if (!worker) co_return;
  PathOnly wish;
  wish.path = body->path;
  wish.mode = static_cast<std::uint32_t>(body->mode);
  const auto made = co_await (*worker)->make_directory(std::move(wish));
  if (!made.ok()) {
    worker->look_at(made.error());
    co_await api->fail(exchange, made.error());
    co_return;
  }
  std::ignore = co_await exchange.send(json_response(201, api::to_json(*body)));
}

}  // namespace

void add_file_routes(http::Router& router, Api& api) {
  const std::string one = "/api/v1/instances/{id}";
  constexpr auto kOffsetMax = std::numeric_limits<std::int64_t>::max() / 2;
  add_handler(router, api, "GET", one + "/files", list_files,
              About("listFiles", "files", "A folder's content, or what a file is")
                  .needs_query("path", text_schema(), "absolute, inside the instance")
                  .query("recursive", flag_schema(), "1: folders below too")
                  .paged(kListPageMax)
                  .answers<api::FileList>(200, "The list, or a page of it")
                  .refuses({403, 404, 409, 422}));
  add_handler(router, api, "GET", one + "/files/content", read_file,
              About("readFile", "files", "A piece of a file, at most 8 MiB")
                  .needs_query("path", text_schema(), "absolute, inside the instance")
                  .query("offset", number_schema(0, kOffsetMax, 0), "from which byte on")
                  .query("length", number_schema(1, kGetBytesMax, kGetBytesMax), "how many bytes")
                  .header("If-Match", text_schema(), "the ETag of the piece before")
                  .answers_with(200, "The bytes", "application/octet-stream", nullptr)
                  .answer_header("X-Autodl-Part-SHA256", text_schema(), "hash of these bytes")
                  .answer_header("X-Autodl-File-Size", text_schema(), "the whole file's size")
                  .answer_header("ETag", text_schema(), "changes with the file")
                  .refuses({403, 404, 409, 412, 422}));
  add_handler(router, api, "POST", one + "/directories", make_directory,
              About("makeDirectory", "files", "A new folder; its parents are made too")
                  .takes<api::DirectoryRequest>()
                  .answers<api::DirectoryRequest>(201, "It is there")
                  .refuses({403, 404, 409, 422}));
}

}  // namespace autodl
