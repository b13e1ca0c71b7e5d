// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "fileworker/upload.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "fileworker/sha256.hpp"

namespace autodl::fileworker {
namespace {

std::string part_name_of(const std::string& ticket) {
  return std::string(kPartPrefix) + ticket;
}

bool is_ordinary(int fd) {
  struct stat info{};
  return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 1;
}

Error hash_error(std::string_view what, const std::string& told, const std::string& found) {
  return Error(
      ErrorKind::kConflict, "hash_mismatch",
      fmt::format("{}: the bytes that came have SHA-256 {}, told was {}", what, found, told),
      "send it again");
}

Result<std::string> hash_file(int fd, const std::string& path) {
  Sha256 hash;
  std::string buffer(1 << 20, '\0');
  for (off_t at = 0;;) {
    const ssize_t got = pread(fd, buffer.data(), buffer.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error("read back", path, errno);
    if (got == 0) return hash.hex();
    hash.add({buffer.data(), static_cast<std::size_t>(got)});
    at += got;
  }
}

}  // namespace

std::string Upload::part_name() const {
  return part_name_of(begin_.ticket);
}

Result<Upload> Upload::begin(const RootDir& root, PutBegin begin) {
  ADL_TRY(place, root.open_parent(begin.path, true));
  const std::string name = part_name_of(begin.ticket);
  UniqueFd part = open_beneath(place.folder.get(), name, O_RDWR);
  if (part.valid() && !is_ordinary(part.get())) part.reset();
  if (!part.valid()) {
    // Absent, or a symlink, FIFO, hard link that somebody laid there: never written to.
    if (unlinkat(place.folder.get(), name.c_str(), 0) != 0 && errno != ENOENT)
      return file_error("upload to", begin.path, errno, place.folder.get());
    part.reset(openat(place.folder.get(), name.c_str(),
                      O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!part.valid()) return file_error("upload to", begin.path, errno, place.folder.get());
  }
  struct stat info{};
  if (fstat(part.get(), &info) != 0) return file_error("upload to", begin.path, errno);
  std::int64_t received = info.st_size;
  if (received > begin.size) {  // of another file under this ticket: begin anew
    if (ftruncate(part.get(), 0) != 0) return file_error("upload to", begin.path, errno);
    received = 0;
  }
  Upload upload(std::move(begin), std::move(place), std::move(part), received);
  struct stat old{};
  bool exists = false;
  ADL_TRY_STATUS(upload.check_target(old, exists));
  return upload;
}

Status Upload::abort(const RootDir& root, const PutAbort& abort) {
  auto place = root.open_parent(abort.path, false);
  if (!place.ok())  // no folder, no part file
    return place.error().code() == "not_found" ? Status() : Status(place.error());
  const std::string name = part_name_of(abort.ticket);
  if (unlinkat(place->folder.get(), name.c_str(), 0) != 0 && errno != ENOENT)
    return file_error("drop the upload to", abort.path, errno);
  return {};
}

// A file or a symlink is replaced (the symlink itself, not what it points to); else refused.
Status Upload::check_target(struct stat& old, bool& exists) const {
  exists = fstatat(place_.folder.get(), place_.name.c_str(), &old, AT_SYMLINK_NOFOLLOW) == 0;
  if (!exists)
    return errno == ENOENT ? Status() : Status(file_error("upload to", begin_.path, errno));
  ADL_TRY_STATUS(refuse_special(old, begin_.path));
  if (S_ISDIR(old.st_mode)) return file_error("upload to", begin_.path, EISDIR);
  return {};
}

Status Upload::add_part(const PutPart& part, std::string_view bytes) {
  if (part.offset > received_)
    return Error(
        ErrorKind::kConflict, "gap",
        fmt::format("this part begins at {}, but only {} bytes have come", part.offset, received_),
        "send the parts in order");
  if (part.offset + part.length > begin_.size)
    return Error(ErrorKind::kInvalid, "too_long",
                 fmt::format("this part ends at {}, but the file has {} bytes",
                             part.offset + part.length, begin_.size),
                 "begin the upload again with the right size");
  if (const std::string found = Sha256::of(bytes); found != part.sha256)
    return hash_error(fmt::format("part at {} of '{}'", part.offset, begin_.path), part.sha256,
                      found);
  for (off_t at = part.offset; !bytes.empty();) {
    const ssize_t wrote = pwrite(part_.get(), bytes.data(), bytes.size(), at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      const Error error =
          file_error("upload to", begin_.path, wrote < 0 ? errno : ENOSPC, part_.get());
      struct stat info{};
      if (fstat(part_.get(), &info) == 0) received_ = info.st_size;  // a true prefix all the same
      return error;
    }
    at += wrote;
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  received_ = std::max(received_, part.offset + part.length);
  return {};
}

Result<FileStat> Upload::commit(const std::string& sha256) {
  if (received_ != begin_.size)
    return Error(ErrorKind::kConflict, "incomplete",
                 fmt::format("'{}': {} of {} bytes have come", begin_.path, received_, begin_.size),
                 "send the missing parts");
  ADL_TRY(found, hash_file(part_.get(), begin_.path));
  if (found != sha256) {
    unlinkat(place_.folder.get(), part_name().c_str(), 0);
    return hash_error(fmt::format("'{}'", begin_.path), sha256, found);
  }
  struct stat old{};
  bool exists = false;
  ADL_TRY_STATUS(check_target(old, exists));
  // A file that is replaced keeps its owner; a new one is its folder's owner's.
  struct stat owner = old;
  if (!exists && fstat(place_.folder.get(), &owner) != 0)
    return file_error("upload to", begin_.path, errno);
  const timespec times[2] = {
      {0, UTIME_OMIT},
      {begin_.mtime_ns / 1'000'000'000 - (begin_.mtime_ns % 1'000'000'000 < 0 ? 1 : 0),
       (begin_.mtime_ns % 1'000'000'000 + 1'000'000'000) % 1'000'000'000}};
  const bool dressed = fchown(part_.get(), owner.st_uid, owner.st_gid) == 0 &&
                       fchmod(part_.get(), begin_.mode) == 0 &&
                       (begin_.mtime_ns == 0 || futimens(part_.get(), times) == 0) &&
                       fsync(part_.get()) == 0;
  if (!dressed) return file_error("upload to", begin_.path, errno, part_.get());
  if (renameat(place_.folder.get(), part_name().c_str(), place_.folder.get(),
               place_.name.c_str()) != 0)
    return file_error("upload to", begin_.path, errno, place_.folder.get());
  if (fsync(place_.folder.get()) != 0)
    return file_error("upload to", begin_.path, errno, place_.folder.get());
  struct stat info{};
  if (fstat(part_.get(), &info) != 0) return file_error("upload to", begin_.path, errno);
  FileStat stat = to_file_stat(info, begin_.path);
  stat.sha256 = found;
  return stat;
}

}  // namespace autodl::fileworker
