// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "journal/journal.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/crash_point.hpp"

namespace autodl {

namespace {

constexpr std::size_t kHeaderBytes = 12;
constexpr std::size_t kFileBytesMax = 64 << 20;

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78U : 0U);
    table[i] = value;
  }
  return table;
}
constexpr auto kTable = make_table();

void put_u32(std::string& out, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8)
    out.push_back(static_cast<char>((value >> shift) & 0xFFU));
}

std::uint32_t get_u32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i)
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

Status write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const auto written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_error(fmt::format("write '{}'", path), errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Status sync_folder(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0)
    return errno_error(fmt::format("sync folder '{}'", path), errno);
  return {};
}

Result<std::string> read_file(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return errno_error(fmt::format("open '{}'", path), errno);
  std::string bytes;
  std::array<char, 65536> chunk;
  for (;;) {
    const auto got = ::read(fd.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(fmt::format("read '{}'", path), errno);
    if (got == 0) return bytes;
    bytes.append(chunk.data(), static_cast<std::size_t>(got));
    if (bytes.size() > kFileBytesMax)
      return Error(ErrorKind::kInternal, "journal_too_big",
                   fmt::format("journal '{}' is over {} bytes", path, kFileBytesMax));
  }
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t value = 0xFFFFFFFFU;
  for (const char c : bytes)
    value = (value >> 8) ^ kTable[(value ^ static_cast<unsigned char>(c)) & 0xFFU];
  return ~value;
}

std::string encode_journal_record(std::string_view payload) {
  std::string out;
  put_u32(out, static_cast<std::uint32_t>(payload.size()));
  put_u32(out, crc32c(payload));
  put_u32(out, crc32c(out));
  out.append(payload);
  return out;
}

ParsedJournal parse_journal(std::string_view bytes) {
  ParsedJournal parsed;
  const auto damaged = [&] {
    parsed.damage =
        fmt::format("record {} at byte {} is damaged", parsed.records.size(), parsed.valid_bytes);
    return parsed;
  };
  const auto only_zeros = [](std::string_view text) {
    return text.find_first_not_of('\0') == std::string_view::npos;
  };
  while (parsed.valid_bytes < bytes.size()) {
    const auto rest = bytes.substr(parsed.valid_bytes);
    if (rest.size() < kHeaderBytes) return parsed;
    const auto header = rest.substr(0, kHeaderBytes);
    // A file that grew without all of its data reaching the disk ends in zeros: a torn tail too.
    if (crc32c(header.substr(0, 8)) != get_u32(header.substr(8)))
      return only_zeros(rest.substr(kHeaderBytes)) ? parsed : damaged();
    const std::size_t length = get_u32(header);
    if (length > kJournalRecordBytesMax) return damaged();
    if (length > rest.size() - kHeaderBytes) return parsed;
    const auto payload = rest.substr(kHeaderBytes, length);
    if (crc32c(payload) != get_u32(header.substr(4)))
      return only_zeros(rest.substr(kHeaderBytes + length)) ? parsed : damaged();
    parsed.records.emplace_back(payload);
    parsed.valid_bytes += kHeaderBytes + length;
  }
  return parsed;
}

std::string FileJournal::path_of(const std::string& name) const {
  return fmt::format("{}/{}/journal", folder_, name);
}

Result<LoadedJournal> FileJournal::load(const std::string& name) {
  const auto path = path_of(name);
  ADL_TRY(bytes, read_file(path));
  auto parsed = parse_journal(bytes);
  if (parsed.damage.empty() && parsed.valid_bytes < bytes.size() &&
      ::truncate(path.c_str(), static_cast<off_t>(parsed.valid_bytes)) != 0)
    return errno_error(fmt::format("cut the torn tail of '{}'", path), errno);
  return LoadedJournal{name, std::move(parsed.records), std::move(parsed.damage)};
}

Result<std::vector<LoadedJournal>> FileJournal::load_all() {
  std::vector<LoadedJournal> loaded;
  DIR* folder = ::opendir(folder_.c_str());
  if (folder == nullptr) {
    if (errno == ENOENT) return loaded;
    return errno_error(fmt::format("list '{}'", folder_), errno);
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(folder))
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  ::closedir(folder);
  std::sort(names.begin(), names.end());
  for (const auto& name : names) {
    struct stat info{};
    if (::stat(path_of(name).c_str(), &info) != 0) continue;
    ADL_TRY(one, load(name));
    loaded.push_back(std::move(one));
  }
  return loaded;
}

Result<int> FileJournal::open_for_append(const std::string& name) {
  const std::lock_guard lock(mutex_);
  auto& fd = open_[name];
  if (fd.valid()) return fd.get();
  const auto folder = fmt::format("{}/{}", folder_, name);
  if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST)
    return errno_error(fmt::format("make folder '{}'", folder_), errno);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return errno_error(fmt::format("make folder '{}'", folder), errno);
  const auto path = path_of(name);
  fd.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return errno_error(fmt::format("open '{}'", path), errno);
  // The names must survive a power cut as well as the bytes.
  ADL_TRY_STATUS(sync_folder(folder));
  ADL_TRY_STATUS(sync_folder(folder_));
  return fd.get();
}

Status FileJournal::append(const std::string& name, const std::vector<std::string>& records) {
  if (records.empty()) return {};
  std::string bytes;
  for (const auto& record : records) bytes += encode_journal_record(record);
  ADL_TRY(fd, open_for_append(name));
  const auto path = path_of(name);
  crash_point("journal.append.before");
  const off_t end = ::lseek(fd, 0, SEEK_END);
  auto written = write_all(fd, bytes, path);
  if (written.ok() && ::fdatasync(fd) != 0)
    written = errno_error(fmt::format("sync '{}'", path), errno);
  if (!written.ok()) {
    // Half a record must not stay in front of the next one.
    [[maybe_unused]] const int cut = ::ftruncate(fd, end);
    return written;
  }
  crash_point("journal.append.after");
  return {};
}

Status FileJournal::rewrite(const std::string& name, const std::vector<std::string>& records) {
  const auto path = path_of(name);
  const auto part = path + ".new";
  std::string bytes;
  for (const auto& record : records) bytes += encode_journal_record(record);
  {
    UniqueFd fd(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd.valid()) return errno_error(fmt::format("open '{}'", part), errno);
    ADL_TRY_STATUS(write_all(fd.get(), bytes, part));
    if (::fsync(fd.get()) != 0) return errno_error(fmt::format("sync '{}'", part), errno);
  }
  crash_point("journal.rewrite.before");
  if (::rename(part.c_str(), path.c_str()) != 0)
    return errno_error(fmt::format("rename '{}'", part), errno);
  {
    const std::lock_guard lock(mutex_);
    open_.erase(name);
  }
  crash_point("journal.rewrite.after");
  return sync_folder(fmt::format("{}/{}", folder_, name));
}

Status FileJournal::remove(const std::string& name) {
  {
    const std::lock_guard lock(mutex_);
    open_.erase(name);
  }
  const auto path = path_of(name);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    return errno_error(fmt::format("remove '{}'", path), errno);
  ::rmdir(fmt::format("{}/{}", folder_, name).c_str());
  return {};
}

}  // namespace autodl
