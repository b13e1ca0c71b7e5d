// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/copy.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <thread>

#include "cli/local_folder.hpp"
#include "cli/output.hpp"
#include "http/url.hpp"
#include "wire/api_signature.hpp"

namespace autodl::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kPartBytes = 8 << 20;
constexpr int kTries = 3;
constexpr std::chrono::hours kPrepareLimit{1};

std::string files_target(const std::string& instance, std::string_view rest) {
  return fmt::format("/api/v1/instances/{}/{}", http::percent_encode(instance), rest);
}

// The call's result. An instance that was just made has no disk yet, and an image may have to be
// pulled first: that is waited for.
template <class Call>
auto await_disk(Api& api, const std::string& instance, const Call& call) -> decltype(call()) {
  Progress progress;
  const auto end = std::chrono::steady_clock::now() + kPrepareLimit;
  for (auto pause = std::chrono::milliseconds{20};;
       pause = std::min(pause * 3 / 2, std::chrono::milliseconds{1000})) {
    auto result = call();
    if (result.ok() || result.error().code() != "disk_not_ready" ||
        std::chrono::steady_clock::now() > end)
      return result;
    ADL_TRY(info, api.get(fmt::format("/api/v1/instances/{}", http::percent_encode(instance))));
    const auto& row = info.as_object();
    const std::string state(row.at("state").as_string());
    if (state == "failed" || state == "released")
      return result.error().context(
          fmt::format("{}: {}", state, std::string(row.at("reason").as_string())));
    const auto* step = row.if_contains("progress");
    if (step != nullptr && step->is_object())
      progress.show("preparing: " + std::string(step->get_object().at("phase").as_string()));
    std::this_thread::sleep_for(pause);  // the server tells no better than when it is asked
  }
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

// A listed number; 0 where the server told none.
std::int64_t number_in(const json::object& item, std::string_view key) {
  const auto* member = item.if_contains(key);
  return member != nullptr && member->is_int64() ? std::max<std::int64_t>(member->get_int64(), 0)
                                                 : 0;
}

// The server may still be busy with a try whose connection was lost.
Result<json::value> send_part(Api& api, const std::string& target, std::string_view bytes) {
  for (int attempt = 0;; ++attempt) {
    auto sent = api.put_part(target, bytes);
    if (sent.ok() || sent.error().code() != "transfer_busy" || attempt == 100) return sent;
    std::this_thread::sleep_for(std::chrono::milliseconds{200});
  }
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
  ADL_TRY(opened, await_disk(api, instance,
                             [&] { return api.post(files_target(instance, "transfers"), begin); }));
  const auto& ticket = opened.as_object();
  const std::string id(ticket.at("ticket").as_string());
  const auto part_bytes = ticket.at("part_bytes").to_number<std::int64_t>();
  if (part_bytes <= 0 || part_bytes > (256 << 20))
    return Error(ErrorKind::kUnavailable, "bad_answer", "the server asks for impossible parts");
  // What an earlier upload of this very file left is not sent again.
  auto part = std::min(number_in(ticket, "received_bytes"), info.st_size) / part_bytes;
  for (; part * part_bytes < info.st_size; ++part) {
    const auto offset = part * part_bytes;
    ADL_TRY(bytes, read_part(fd.get(), offset, std::min(part_bytes, info.st_size - offset), local));
    const auto target = files_target(instance, fmt::format("transfers/{}/parts/{}", id, part));
    if (auto sent = send_part(api, target, bytes); !sent.ok()) {
      // What was sent is kept where the server is away: the same upload goes on from it.
      if (sent.error().kind() != ErrorKind::kUnavailable)
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
  const json::object body{{"path", path}, {"mode", 0755}};
  const auto made = await_disk(
      api, instance, [&] { return api.post(files_target(instance, "directories"), body); });
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

Result<std::int64_t> file_size(const http::Headers& headers) {
  const auto text = headers.get("X-Autodl-File-Size");
  std::int64_t size = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (failed != std::errc() || end != text.data() + text.size() || size < 0)
    return Error(ErrorKind::kUnavailable, "bad_answer", "the server did not tell the file's size");
  return size;
}

Status fetch_parts(Api& api, const std::string& instance, const std::string& remote, PartFile& out,
                   const CopyProgress& progress) {
  std::string tag;
  std::int64_t size = 1;
  for (std::int64_t offset = 0; offset < size;) {
    const auto target =
        files_target(instance, fmt::format("files/content?length={}&offset={}&path={}", kPartBytes,
                                           offset, http::percent_encode(remote)));
    ADL_TRY(part, api.get_bytes(target, tag));
    ADL_TRY(told, file_size(part.headers));
    size = told;
    tag = std::string(part.headers.get("ETag"));
    if (part.bytes.empty() && offset < size)
      return Error(ErrorKind::kConflict, "file_changed", "the file ended early", "try again");
    ADL_TRY_STATUS(out.append(part.bytes));
    offset += static_cast<std::int64_t>(part.bytes.size());
    progress(remote, offset, size);
  }
  return {};
}

// One remote file: whole, under its name, or not at all. A file that changes is fetched anew.
Status download_file(Api& api, const std::string& instance, const std::string& remote,
                     const json::object& item, const UniqueFd& folder, const std::string& name,
                     const CopyProgress& progress) {
  for (int attempt = 1;; ++attempt) {
    ADL_TRY(part, PartFile::make(folder, name));
    const auto fetched = fetch_parts(api, instance, remote, part, progress);
    if (fetched.ok())
      return part.finish(static_cast<std::uint32_t>(number_in(item, "mode")),
                         number_in(item, "mtime_ms"));
    if (fetched.error().code() != "file_changed" || attempt == kTries)
      return fetched.error().context(fmt::format("download '{}'", remote));
  }
}

struct Listing {
  std::string type;
  std::vector<json::object> items;
};

Result<Listing> list_remote(Api& api, const std::string& instance, const std::string& remote) {
  Listing found;
  std::string cursor;
  do {
    auto target = files_target(
        instance, fmt::format("files?path={}&recursive=1", http::percent_encode(remote)));
    if (!cursor.empty()) target += "&cursor=" + http::percent_encode(cursor);
    ADL_TRY(answer, await_disk(api, instance, [&] { return api.get(target); }));
    const auto& page = answer.as_object();
    found.type = std::string(page.at("type").as_string());
    for (const auto& row : page.at("items").as_array()) found.items.push_back(row.as_object());
    const auto* next = page.if_contains("next");
    cursor = next != nullptr && next->is_string() ? std::string(next->get_string()) : "";
  } while (!cursor.empty());
  return found;
}

Status download_folder(Api& api, const std::string& instance, const std::string& remote,
                       const std::vector<json::object>& items, const LocalFolder& root,
                       const CopyProgress& progress) {
  // Every name is looked at first; links come last, so that nothing is written through one.
  std::vector<std::pair<std::vector<std::string>, const json::object*>> planned;
  for (const auto& item : items) {
    ADL_TRY(parts, path_parts(std::string(item.at("path").as_string())));
    planned.emplace_back(std::move(parts), &item);
  }
  for (const auto& [parts, item] : planned) {
    const auto type = item->at("type").as_string();
    const std::string shown(item->at("path").as_string());
    if (type == "directory") {
      ADL_TRY(made, root.folder(parts));
    } else if (type == "file") {
      ADL_TRY(folder, root.folder({parts.begin(), parts.end() - 1}));
      const auto done =
          download_file(api, instance, remote + "/" + shown, *item, folder, parts.back(), progress);
      if (!done.ok() && done.error().code() != "no_such_file") return done.error();
      if (!done.ok())
        fmt::print(stderr, "skipped: '{}' was gone when its turn came\n", clean(shown));
    } else if (type != "symlink") {
      fmt::print(stderr, "skipped: '{}' is no regular file\n", clean(shown));
    }
  }
  for (const auto& [parts, item] : planned) {
    if (item->at("type").as_string() != "symlink") continue;
    const auto* to = item->if_contains("target");
    const std::string target(to != nullptr && to->is_string() ? to->get_string().c_str() : "");
    if (link_stays_inside(parts, target)) {
      ADL_TRY_STATUS(root.link(parts, target));
    } else {
      fmt::print(stderr, "skipped: the link '{}' leads out of the folder\n",
                 clean(std::string(item->at("path").as_string())));
    }
  }
  return {};
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
  auto base = remote;
  while (base.size() > 1 && base.ends_with('/')) base.pop_back();
  ADL_TRY(listing, list_remote(api, instance, base));
  if (listing.type != "file") {
    if (listing.type != "directory")
      return Error(ErrorKind::kInvalid, "bad_file_type",
                   fmt::format("'{}' is neither a file nor a folder", remote));
    ADL_TRY(root, LocalFolder::open(local));
    return download_folder(api, instance, base == "/" ? "" : base, listing.items, root, progress);
  }
  if (listing.items.empty())
    return Error(ErrorKind::kUnavailable, "bad_answer", "the server's answer names no file");
  auto place = fs::absolute(local).lexically_normal();
  if (fs::is_directory(place) || local.ends_with('/')) {
    ADL_TRY(parts, path_parts(base.substr(base.rfind('/') + 1)));
    place /= parts.front();
  }
  ADL_TRY(root, LocalFolder::open(place.parent_path().string()));
  ADL_TRY(folder, root.folder({}));
  return download_file(api, instance, base, listing.items.front(), folder,
                       place.filename().string(), progress);
}

}  // namespace autodl::cli
