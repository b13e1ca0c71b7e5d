// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/copy.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "http/url.hpp"
#include "wire/api_signature.hpp"

namespace autodl::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kPartBytes = 8 << 20;

std::string files_target(const std::string& instance, std::string_view rest) {
  return fmt::format("/api/v1/instances/{}/{}", http::percent_encode(instance), rest);
}

Result<std::string> read_part(int fd, std::int64_t offset, std::int64_t length,
                              const std::string& path) {
  std::string bytes(static_cast<std::size_t>(length), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto got = ::pread(fd, bytes.data() + done, bytes.size() - done,
                             offset + static_cast<std::int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(fmt::format("read '{}'", path), errno, ErrorKind::kInvalid);
    if (got == 0)
      return Error(ErrorKind::kConflict, "file_changed",
                   fmt::format("'{}' became shorter while it was sent", path), "send it again");
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

Result<std::string> hash_file(int fd, std::int64_t size, const std::string& path) {
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> hash(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr);
  for (std::int64_t offset = 0; offset < size; offset += kPartBytes) {
    ADL_TRY(bytes, read_part(fd, offset, std::min(kPartBytes, size - offset), path));
    EVP_DigestUpdate(hash.get(), bytes.data(), bytes.size());
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  EVP_DigestFinal_ex(hash.get(), digest, &length);
  std::string text;
  for (unsigned int i = 0; i < length; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

Status upload_file(Api& api, const std::string& instance, const std::string& local,
                   const std::string& remote, const CopyProgress& progress) {
  UniqueFd fd(::open(local.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info{};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0)
    return errno_error(fmt::format("open '{}'", local), errno, ErrorKind::kInvalid);
  ADL_TRY(hash, hash_file(fd.get(), info.st_size, local));
  const json::object begin{
      {"path", remote},
      {"size", info.st_size},
      {"mode", info.st_mode & 07777},
      {"mtime_ms", info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1'000'000},
      {"sha256", hash}};
  ADL_TRY(opened, api.post(files_target(instance, "transfers"), begin));
  const auto& ticket = opened.as_object();
  const std::string id(ticket.at("ticket").as_string());
  const auto part_bytes = ticket.at("part_bytes").to_number<std::int64_t>();
  for (std::int64_t part = 0; part * part_bytes < info.st_size; ++part) {
    const auto offset = part * part_bytes;
    ADL_TRY(bytes, read_part(fd.get(), offset, std::min(part_bytes, info.st_size - offset), local));
    const auto target = files_target(instance, fmt::format("transfers/{}/parts/{}", id, part));
    if (auto sent = api.put_part(target, bytes); !sent.ok()) {
      static_cast<void>(api.remove(files_target(instance, "transfers/" + id)).ok());
      return sent.error().context(fmt::format("upload '{}'", local));
    }
    progress(local, offset + static_cast<std::int64_t>(bytes.size()), info.st_size);
  }
  const auto done =
      api.post(files_target(instance, fmt::format("transfers/{}/complete", id)), json::object{});
  if (!done.ok()) return done.error().context(fmt::format("upload '{}'", local));
  return {};
}

Status make_remote_folder(Api& api, const std::string& instance, const std::string& path) {
  const auto made =
      api.post(files_target(instance, "directories"), json::object{{"path", path}, {"mode", 0755}});
  if (!made.ok()) return made.error().context(fmt::format("make folder '{}'", path));
  return {};
}

Status upload_folder(Api& api, const std::string& instance, const fs::path& local,
                     const std::string& remote, const CopyProgress& progress) {
  ADL_TRY_STATUS(make_remote_folder(api, instance, remote));
  std::error_code failed;
  for (fs::recursive_directory_iterator entry(local, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const auto target = remote + "/" + fs::relative(entry->path(), local).string();
    if (entry->is_symlink()) {
      fmt::print(stderr, "skipped: '{}' is a symbolic link\n", entry->path().string());
    } else if (entry->is_directory()) {
      ADL_TRY_STATUS(make_remote_folder(api, instance, target));
    } else if (entry->is_regular_file()) {
      ADL_TRY_STATUS(upload_file(api, instance, entry->path().string(), target, progress));
    } else {
      fmt::print(stderr, "skipped: '{}' is no regular file\n", entry->path().string());
    }
  }
  if (failed)
    return Error(ErrorKind::kInvalid, "os_error",
                 fmt::format("read folder '{}': {}", local.string(), failed.message()));
  return {};
}

// One remote file into a temporary file beside its place, then renamed.
Status download_file(Api& api, const std::string& instance, const std::string& remote,
                     const json::object& item, const fs::path& local,
                     const CopyProgress& progress) {
  const auto size = item.at("size").to_number<std::int64_t>();
  const auto temporary = local.parent_path() / ("." + local.filename().string() + ".autodl-part");
  UniqueFd fd(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid())
    return errno_error(fmt::format("write '{}'", temporary.string()), errno, ErrorKind::kInvalid);
  std::string tag;
  for (std::int64_t offset = 0; offset < size || offset == 0;) {
    const auto target =
        files_target(instance, fmt::format("files/content?length={}&offset={}&path={}", kPartBytes,
                                           offset, http::percent_encode(remote)));
    auto part = api.get_bytes(target, tag);
    if (!part.ok()) {
      ::unlink(temporary.c_str());
      return part.error().context(fmt::format("download '{}'", remote));
    }
    tag = std::string(part->headers.get("ETag"));
    std::string_view rest(part->bytes);
    while (!rest.empty()) {
      const auto written = ::write(fd.get(), rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        const int why = errno;
        ::unlink(temporary.c_str());
        return errno_error(fmt::format("write '{}'", local.string()), why, ErrorKind::kInvalid);
      }
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
    offset += static_cast<std::int64_t>(part->bytes.size());
    progress(remote, offset, size);
    if (part->bytes.empty()) break;
  }
  const auto mode = item.contains("mode") ? item.at("mode").to_number<unsigned>() & 0777U : 0644U;
  if (::fchmod(fd.get(), mode) != 0 || ::rename(temporary.c_str(), local.c_str()) != 0)
    return errno_error(fmt::format("write '{}'", local.string()), errno, ErrorKind::kInvalid);
  return {};
}

bool stays_below(const fs::path& relative) {
  if (relative.is_absolute()) return false;
  return std::none_of(relative.begin(), relative.end(), [](const fs::path& part) {
    return part == ".." || part.string().find('\0') != std::string::npos;
  });
}

}  // namespace

Status upload(Api& api, const std::string& instance, const std::vector<std::string>& local,
              const std::string& remote, const CopyProgress& progress) {
  for (const auto& path : local)
    if (!fs::exists(path))
      return Error(ErrorKind::kInvalid, "no_such_file", fmt::format("'{}' does not exist", path),
                   "nothing was sent");
  const bool into_folder = remote.ends_with('/') || local.size() > 1;
  const auto base = remote.ends_with('/') ? remote.substr(0, remote.size() - 1) : remote;
  for (const auto& path : local) {
    const auto full = fs::absolute(path).lexically_normal();
    const auto name =
        (full.has_filename() ? full.filename() : full.parent_path().filename()).string();
    const auto target = into_folder ? base + "/" + name : base;
    const auto sent = fs::is_directory(path) ? upload_folder(api, instance, full, target, progress)
                                             : upload_file(api, instance, path, target, progress);
    if (!sent.ok()) return sent.error();
  }
  return {};
}

Status download(Api& api, const std::string& instance, const std::string& remote,
                const std::string& local, const CopyProgress& progress) {
  std::string cursor;
  const fs::path root(local);
  do {
    auto target = files_target(
        instance, fmt::format("files?path={}&recursive=1", http::percent_encode(remote)));
    if (!cursor.empty()) target += "&cursor=" + http::percent_encode(cursor);
    ADL_TRY(listing, api.get(target));
    const auto& page = listing.as_object();
    if (page.at("type").as_string() == "file") {
      const auto place = fs::is_directory(root) || local.ends_with('/')
                             ? root / fs::path(remote).filename()
                             : root;
      std::error_code failed;
      if (place.has_parent_path()) fs::create_directories(place.parent_path(), failed);
      return download_file(api, instance, remote, page.at("items").as_array().at(0).as_object(),
                           fs::absolute(place), progress);
    }
    std::error_code failed;
    fs::create_directories(root, failed);
    for (const auto& row : page.at("items").as_array()) {
      const auto& item = row.as_object();
      const fs::path relative(std::string(item.at("path").as_string()));
      if (!stays_below(relative))
        return Error(
            ErrorKind::kInvalid, "bad_path",
            fmt::format("the server named a path outside the folder: '{}'", relative.string()));
      const auto place = fs::absolute(root / relative);
      const auto type = item.at("type").as_string();
      if (type == "directory") {
        fs::create_directories(place, failed);
      } else if (type == "file") {
        const auto path = remote + "/" + relative.string();
        ADL_TRY_STATUS(download_file(api, instance, path, item, place, progress));
      } else {
        fmt::print(stderr, "skipped: '{}' is a {}\n", relative.string(), std::string(type));
      }
    }
    const auto* next = page.if_contains("next");
    cursor = next != nullptr && next->is_string() ? std::string(next->get_string()) : "";
  } while (!cursor.empty());
  return {};
}

}  // namespace autodl::cli
