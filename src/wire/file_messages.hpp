// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What control (or a tool) and a file worker say to each other in frames on the worker's channel.
// One request at a time; each has exactly one last reply (ok, end or error). A request that fails
// leaves the channel usable, but for a frame that is not one of these: the worker then ends.
//
//   put_begin PutBegin            → ok {"received":N}     creates or finds .autodl-part-TICKET
//   put_part  PutPart, then data frames that add up to its length
//                                 → ok {"received":N}     or error hash_mismatch, gap, no_space
//   put_commit {"sha256"}         → ok FileStat           verified, fsynced, renamed into place
//   put_abort {"ticket","path"}   → ok {}                 the part file is gone
//   get       FileGet             → data…, end GetEnd     at most kGetBytesMax
//   list      FileList            → entries…, end ListEnd
//   stat      {"path"}            → ok FileStat
//   mkdir     {"path","mode"}     → ok FileStat           parents too; an existing folder is fine
//
// Parts are verified before they are written, so that a part file always holds a true prefix: after
// a crash put_begin tells how much, and the sender goes on from any offset up to that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace autodl {

enum class FileFrame : std::uint8_t {
  kPutBegin = 64,
  kData = 65,
  kPutPart = 66,
  kGet = 67,
  kList = 68,
  kStat = 69,
  kMkdir = 70,
  kPutAbort = 71,
  kPutCommit = 72,
  kOk = 80,
  kError = 81,
  kReplyData = 82,
  kEntries = 83,
  kEnd = 84,
};

inline constexpr std::int64_t kPartBytesMax = 8 << 20;
inline constexpr std::int64_t kGetBytesMax = 8 << 20;
inline constexpr std::int64_t kListPageMax = 1000;
inline constexpr std::string_view kPartPrefix = ".autodl-part-";

// path: absolute, inside the instance; its last component is the file's name.
struct PutBegin {
  std::string ticket;  // 1-64 of [0-9A-Za-z_-]; names the part file
  std::string path;
  std::int64_t size = 0;
  std::uint32_t mode = 0644;  // 07777 at most
  std::int64_t mtime_ns = 0;  // since the epoch; 0: now
  bool operator==(const PutBegin&) const = default;
};

struct PutPart {
  std::int64_t offset = 0;
  std::int64_t length = 0;  // 1 … kPartBytesMax
  std::string sha256;       // 64 hex digits
  bool operator==(const PutPart&) const = default;
};

struct PutCommit {
  std::string sha256;  // of the whole file
  bool operator==(const PutCommit&) const = default;
};

struct PutAbort {
  std::string ticket;
  std::string path;
  bool operator==(const PutAbort&) const = default;
};

struct FileGet {
  std::string path;
  std::int64_t offset = 0;
  std::int64_t length = kGetBytesMax;
  std::string etag;  // empty: any; else error file_changed where the file has another
  bool operator==(const FileGet&) const = default;
};

struct GetEnd {
  std::int64_t length = 0;  // bytes sent; less than asked at the file's end
  std::string sha256;       // of these bytes
  std::int64_t size = 0;    // of the whole file
  std::string etag;
  bool operator==(const GetEnd&) const = default;
};

struct FileList {
  std::string path;
  bool recursive = false;
  std::string cursor;  // ListEnd::next of the page before
  std::int64_t limit = kListPageMax;
  bool operator==(const FileList&) const = default;
};

enum class FileType { kFile, kDirectory, kSymlink, kOther };
std::string_view to_string(FileType type);

// path: relative to the listed folder ("" for the named file itself); of stat: as asked.
struct FileStat {
  std::string path;
  FileType type = FileType::kFile;
  std::int64_t size = 0;
  std::uint32_t mode = 0;
  std::int64_t mtime_ns = 0;
  std::string target;  // of a symlink
  std::string etag;    // of a file: changes with it
  std::string sha256;  // of put_commit's reply alone
  bool operator==(const FileStat&) const = default;
};

struct ListEnd {
  FileType type = FileType::kDirectory;  // of what was named
  std::string next;                      // empty: no more
  std::int64_t skipped = 0;  // names that are not UTF-8, folders too deep or of the system
  bool operator==(const ListEnd&) const = default;
};

struct Received {
  std::int64_t received = 0;
  bool operator==(const Received&) const = default;
};

struct PathOnly {
  std::string path;
  std::uint32_t mode = 0755;  // of mkdir
  bool operator==(const PathOnly&) const = default;
};

std::string to_json(const PutBegin& message);
std::string to_json(const PutPart& message);
std::string to_json(const PutCommit& message);
std::string to_json(const PutAbort& message);
std::string to_json(const FileGet& message);
std::string to_json(const GetEnd& message);
std::string to_json(const FileList& message);
std::string to_json(const FileStat& message);
std::string to_json(const std::vector<FileStat>& entries);
std::string to_json(const ListEnd& message);
std::string to_json(const Received& message);
std::string to_json(const PathOnly& message);
std::string to_json(const Error& error);  // kind, code, message, remedy

Result<PutBegin> parse_put_begin(std::string_view json);
Result<PutPart> parse_put_part(std::string_view json);
Result<PutCommit> parse_put_commit(std::string_view json);
Result<PutAbort> parse_put_abort(std::string_view json);
Result<FileGet> parse_file_get(std::string_view json);
Result<GetEnd> parse_get_end(std::string_view json);
Result<FileList> parse_file_list(std::string_view json);
Result<FileStat> parse_file_stat(std::string_view json);
Result<std::vector<FileStat>> parse_file_entries(std::string_view json);
Result<ListEnd> parse_list_end(std::string_view json);
Result<Received> parse_received(std::string_view json);
Result<PathOnly> parse_path_only(std::string_view json);
// An error reply as an Error; bytes that are none give kInvalid bad_message.
Error parse_error_reply(std::string_view json);

// Absolute, at most 4096 bytes, no NUL, no component "." or ".." and no part file's name.
Status check_file_path(std::string_view path);

std::string file_frame(FileFrame type, std::string_view payload);

}  // namespace autodl
