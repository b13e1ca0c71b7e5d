// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "wire/file_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>

#include "wire/frames.hpp"
#include "wire/json_fields.hpp"

namespace autodl {
namespace json = boost::json;

namespace {

constexpr std::size_t kPathBytesMax = 4096;
constexpr std::int64_t kFileBytesMax = std::int64_t{1} << 50;
constexpr std::array kKinds{ErrorKind::kInvalid,     ErrorKind::kPayment,     ErrorKind::kNotFound,
                            ErrorKind::kDenied,      ErrorKind::kConflict,    ErrorKind::kExhausted,
                            ErrorKind::kUnavailable, ErrorKind::kUnsupported, ErrorKind::kInternal};
constexpr std::array kTypes{FileType::kFile, FileType::kDirectory, FileType::kSymlink,
                            FileType::kOther};

std::string read_path(JsonFields& fields) {
  std::string path = fields.text("path", kPathBytesMax);
  if (fields.failed()) return path;
  if (auto status = check_file_path(path); !status.ok()) fields.fail_with(status.error());
  return path;
}

std::string read_ticket(JsonFields& fields) {
  std::string ticket = fields.text("ticket", 64);
  const auto plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           c == '-';
  };
  if (ticket.empty() || !std::all_of(ticket.begin(), ticket.end(), plain))
    fields.fail("field 'ticket' is not 1-64 of [0-9A-Za-z_-]");
  return ticket;
}

bool is_sha256(std::string_view text) {
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == 64 && std::all_of(text.begin(), text.end(), hex);
}

std::string read_sha256(JsonFields& fields) {
  std::string text = fields.text("sha256", 64);
  if (!is_sha256(text)) fields.fail("field 'sha256' is not 64 lower-case hex digits");
  return text;
}

std::uint32_t read_mode(JsonFields& fields, std::uint32_t fallback) {
  return static_cast<std::uint32_t>(fields.integer_or("mode", fallback, 0, 07777));
}

FileType read_type(JsonFields& fields) {
  const std::string name = fields.text("type", 16);
  for (const FileType type : kTypes) {
    if (name == to_string(type)) return type;
  }
  fields.fail("field 'type' is none of file, directory, symlink, other");
  return FileType::kOther;
}

json::object to_object(const FileStat& stat) {
  json::object object{{"path", stat.path},
                      {"type", to_string(stat.type)},
                      {"size", stat.size},
                      {"mode", stat.mode},
                      {"mtime_ns", stat.mtime_ns}};
  if (!stat.target.empty()) object.emplace("target", stat.target);
  if (!stat.etag.empty()) object.emplace("etag", stat.etag);
  if (!stat.sha256.empty()) object.emplace("sha256", stat.sha256);
  return object;
}

FileStat read_stat(JsonFields& fields) {
  FileStat stat;
  stat.path = fields.text("path", kPathBytesMax);
  stat.type = read_type(fields);
  stat.size = fields.integer("size", 0, INT64_MAX);
  stat.mode = read_mode(fields, 0);
  stat.mtime_ns = fields.integer("mtime_ns", INT64_MIN, INT64_MAX);
  stat.target = fields.optional_text("target", kPathBytesMax).value_or("");
  stat.etag = fields.optional_text("etag", 128).value_or("");
  if (fields.has("sha256")) stat.sha256 = read_sha256(fields);
  return stat;
}

}  // namespace

std::string file_frame(FileFrame type, std::string_view payload) {
  return encode_frame(static_cast<std::uint8_t>(type), payload);
}

std::string_view to_string(FileType type) {
  switch (type) {
    case FileType::kFile: return "file";
    case FileType::kDirectory: return "directory";
    case FileType::kSymlink: return "symlink";
    case FileType::kOther: return "other";
  }
  return "other";
}

Status check_file_path(std::string_view path) {
  const auto bad = [&](std::string message) {
    return Error(ErrorKind::kInvalid, "bad_path", std::move(message),
                 "give an absolute path inside the instance, such as /root/train.py");
  };
  if (path.empty() || path.front() != '/') return bad("a path must begin with '/'");
  if (path.size() > kPathBytesMax - 64) return bad("a path has at most 4032 bytes");
  if (path.find('\0') != std::string_view::npos) return bad("a path may not hold a NUL byte");
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view name = path.substr(at, end - at);
    if (name == ".." || name == ".") return bad("a path may not hold '.' or '..'");
    if (name.size() > 255) return bad("a name has at most 255 bytes");
    if (name.starts_with(kPartPrefix))
      return bad(fmt::format("names that begin with '{}' are the platform's own", kPartPrefix));
    at = end + 1;
  }
  return {};
}

std::string to_json(const PutBegin& message) {
  return json::serialize(json::object{{"ticket", message.ticket},
                                      {"path", message.path},
                                      {"size", message.size},
                                      {"mode", message.mode},
                                      {"mtime_ns", message.mtime_ns}});
}

Result<PutBegin> parse_put_begin(std::string_view text) {
  JsonFields fields(text, "put_begin");
  PutBegin message;
  message.ticket = read_ticket(fields);
  message.path = read_path(fields);
  message.size = fields.integer("size", 0, kFileBytesMax);
  message.mode = read_mode(fields, 0644);
  message.mtime_ns = fields.integer_or("mtime_ns", 0, INT64_MIN, INT64_MAX);
  ADL_TRY_STATUS(fields.finish());
  return message;
}

std::string to_json(const PutPart& message) {
  return json::serialize(json::object{
      {"offset", message.offset}, {"length", message.length}, {"sha256", message.sha256}});
}

Result<PutPart> parse_put_part(std::string_view text) {
  JsonFields fields(text, "put_part");
  PutPart message;
  message.offset = fields.integer("offset", 0, kFileBytesMax);
  message.length = fields.integer("length", 1, kPartBytesMax);
  message.sha256 = read_sha256(fields);
  ADL_TRY_STATUS(fields.finish());
  return message;
}

std::string to_json(const PutCommit& message) {
  return json::serialize(json::object{{"sha256", message.sha256}});
}

Result<PutCommit> parse_put_commit(std::string_view text) {
  JsonFields fields(text, "put_commit");
  PutCommit message{read_sha256(fields)};
  ADL_TRY_STATUS(fields.finish());
  return message;
}

std::string to_json(const PutAbort& message) {
  return json::serialize(json::object{{"ticket", message.ticket}, {"path", message.path}});
}

Result<PutAbort> parse_put_abort(std::string_view text) {
  JsonFields fields(text, "put_abort");
  PutAbort message;
  message.ticket = read_ticket(fields);
  message.path = read_path(fields);
  ADL_TRY_STATUS(fields.finish());
  return message;
}

std::string to_json(const FileGet& message) {
  json::object object{
      {"path", message.path}, {"offset", message.offset}, {"length", message.length}};
  if (!message.etag.empty()) object.emplace("etag", message.etag);
  return json::serialize(object);
}

Result<FileGet> parse_file_get(std::string_view text) {
  JsonFields fields(text, "get");
  FileGet message;
  message.path = read_path(fields);
  message.offset = fields.integer_or("offset", 0, 0, kFileBytesMax);
  message.length = fields.integer_or("length", kGetBytesMax, 0, kGetBytesMax);
  message.etag = fields.optional_text("etag", 128).value_or("");
  ADL_TRY_STATUS(fields.finish());
  return message;
}

std::string to_json(const GetEnd& message) {
  return json::serialize(json::object{{"length", message.length},
                                      {"sha256", message.sha256},
                                      {"size", message.size},
                                      {"etag", message.etag}});
}

Result<GetEnd> parse_get_end(std::string_view text) {
  JsonFields fields(text, "get's end");
  GetEnd message;
  message.length = fields.integer("length", 0, kGetBytesMax);
  message.sha256 = read_sha256(fields);
  message.size = fields.integer("size", 0, INT64_MAX);
  message.etag = fields.text("etag", 128);
  ADL_TRY_STATUS(fields.finish());
  return message;
}

std::string to_json(const FileList& message) {
  json::object object{
      {"path", message.path}, {"recursive", message.recursive}, {"limit", message.limit}};
  if (!message.cursor.empty()) object.emplace("cursor", message.cursor);
  return json::serialize(object);
}

Result<FileList> parse_file_list(std::string_view text) {
  JsonFields fields(text, "list");
  FileList message;
  message.path = read_path(fields);
  message.recursive = fields.flag_or("recursive", false);
  message.cursor = fields.optional_text("cursor", kPathBytesMax).value_or("");
  message.limit = fields.integer_or("limit", kListPageMax, 1, kListPageMax);
  ADL_TRY_STATUS(fields.finish());
  return message;
}

std::string to_json(const FileStat& message) {
  return json::serialize(to_object(message));
}

Result<FileStat> parse_file_stat(std::string_view text) {
  JsonFields fields(text, "stat");
  FileStat stat = read_stat(fields);
  ADL_TRY_STATUS(fields.finish());
  return stat;
}

std::string to_json(const std::vector<FileStat>& entries) {
  json::array array;
  for (const FileStat& entry : entries) array.push_back(to_object(entry));
  return json::serialize(json::object{{"entries", std::move(array)}});
}

Result<std::vector<FileStat>> parse_file_entries(std::string_view text) {
  JsonFields fields(text, "entries");
  std::vector<FileStat> entries;
  for (const json::value& item : fields.items("entries", kListPageMax)) {
    JsonFields inner(item, "entry");
    entries.push_back(read_stat(inner));
    ADL_TRY_STATUS(inner.finish());
  }
  ADL_TRY_STATUS(fields.finish());
  return entries;
}

std::string to_json(const ListEnd& message) {
  json::object object{{"type", to_string(message.type)}, {"skipped", message.skipped}};
  if (!message.next.empty()) object.emplace("next", message.next);
  return json::serialize(object);
}

Result<ListEnd> parse_list_end(std::string_view text) {
  JsonFields fields(text, "list's end");
  ListEnd message;
  message.type = read_type(fields);
  message.next = fields.optional_text("next", kPathBytesMax).value_or("");
  message.skipped = fields.integer_or("skipped", 0, 0, INT64_MAX);
  ADL_TRY_STATUS(fields.finish());
  return message;
}

std::string to_json(const Received& message) {
  return json::serialize(json::object{{"received", message.received}});
}

Result<Received> parse_received(std::string_view text) {
  JsonFields fields(text, "received");
  const Received message{fields.integer("received", 0, kFileBytesMax)};
  ADL_TRY_STATUS(fields.finish());
  return message;
}

std::string to_json(const PathOnly& message) {
  return json::serialize(json::object{{"path", message.path}, {"mode", message.mode}});
}

Result<PathOnly> parse_path_only(std::string_view text) {
  JsonFields fields(text, "path");
  PathOnly message;
  message.path = read_path(fields);
  message.mode = read_mode(fields, 0755);
  ADL_TRY_STATUS(fields.finish());
  return message;
}

std::string to_json(const Error& error) {
  return json::serialize(json::object{{"kind", to_string(error.kind())},
                                      {"code", error.code()},
                                      {"message", readable_text(error.message(), 8192)},
                                      {"remedy", readable_text(error.remedy(), 8192)}});
}

Error parse_error_reply(std::string_view text) {
  JsonFields fields(text, "error reply");
  const std::string name = fields.text("kind", 32);
  const std::string code = fields.text("code", 64);
  const std::string message = fields.text("message", 8192);
  const std::string remedy = fields.optional_text("remedy", 8192).value_or("");
  if (auto status = fields.finish(); !status.ok()) return status.error();
  for (const ErrorKind kind : kKinds) {
    if (name == to_string(kind)) return Error(kind, code, message, remedy);
  }
  return Error(ErrorKind::kInvalid, "bad_message", "error reply: unknown kind '" + name + "'");
}

}  // namespace autodl
