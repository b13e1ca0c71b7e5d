// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "fileworker/listing.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>

namespace autodl::fileworker {
namespace {

struct CloseDir {
  void operator()(DIR* dir) const { closedir(dir); }
};

// The names in a folder, sorted; consumes the descriptor.
Result<std::vector<std::string>> names_in(UniqueFd folder, std::string_view path) {
  const std::unique_ptr<DIR, CloseDir> dir(fdopendir(folder.get()));
  if (!dir) return file_error("list", path, errno);
  folder.release();
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(dir.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == ".." || name.starts_with(kPartPrefix)) continue;
    if (names.size() >= kNamesPerFolderMax)
      return Error(ErrorKind::kExhausted, "too_many_entries",
                   fmt::format("'{}' holds more than {} names", path, kNamesPerFolderMax),
                   "pack it inside first: autodl exec ID -- tar cf /root/x.tar FOLDER");
    names.emplace_back(name);
  }
  if (errno != 0) return file_error("list", path, errno);
  std::sort(names.begin(), names.end());
  return names;
}

class Walk {
 public:
  explicit Walk(const FileList& request) : request_(request) {}

  // prefix: "" or "a/b/"; false where the page is full.
  Result<bool> folder(UniqueFd fd, const std::string& prefix, std::size_t depth) {
    UniqueFd at(fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
    if (!at.valid()) return file_error("list", request_.path, errno);
    ADL_TRY(names, names_in(std::move(fd), request_.path));
    for (const std::string& name : names) {
      const std::string path = prefix + name;
      ADL_TRY(more, entry(at.get(), name, path, depth));
      if (!more) return false;
    }
    return true;
  }

  ListPage take() { return std::move(page_); }

 private:
  // Seen on an earlier page, together with all below it.
  bool is_past(const std::string& path) const {
    return !request_.cursor.empty() && path_less(path, request_.cursor) &&
           !request_.cursor.starts_with(path + "/");
  }

  Result<bool> entry(int folder_fd, const std::string& name, const std::string& path,
                     std::size_t depth) {
    if (is_past(path)) return true;
    if (!is_utf8(name) || path.size() > PATH_MAX - 64) {
      ++page_.end.skipped;
      return true;
    }
    struct stat info{};
    if (fstatat(folder_fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      return true;  // gone meanwhile
    const bool shown = request_.cursor.empty() || path_less(request_.cursor, path);
    if (shown) {
      if (page_.entries.size() >= static_cast<std::size_t>(request_.limit)) {
        page_.end.next = page_.entries.back().path;
        return false;
      }
      FileStat stat = to_file_stat(info, path);
      if (S_ISLNK(info.st_mode) && !read_target(folder_fd, name, stat.target)) {
        ++page_.end.skipped;
        return true;
      }
      page_.entries.push_back(std::move(stat));
    }
    if (!S_ISDIR(info.st_mode) || !request_.recursive) return true;
    return below(folder_fd, name, path, depth);
  }

  Result<bool> below(int folder_fd, const std::string& name, const std::string& path,
                     std::size_t depth) {
    UniqueFd next = open_beneath(folder_fd, name, O_RDONLY | O_DIRECTORY);
    if (!next.valid()) return true;  // exchanged meanwhile, or not readable
    if (depth + 1 >= kDepthMax || !refuse_system(next.get(), path).ok()) {
      ++page_.end.skipped;
      return true;
    }
    return folder(std::move(next), path + "/", depth + 1);
  }

  static bool read_target(int folder_fd, const std::string& name, std::string& target) {
    char text[PATH_MAX];
    const ssize_t length = readlinkat(folder_fd, name.c_str(), text, sizeof text);
    if (length < 0 || length >= PATH_MAX) return false;
    target.assign(text, static_cast<std::size_t>(length));
    return is_utf8(target);
  }

  const FileList& request_;
  ListPage page_;
};

}  // namespace

bool path_less(std::string_view a, std::string_view b) {
  const auto rank = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c); };
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [&](char x, char y) { return rank(x) < rank(y); });
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80       ? 1
                               : lead >> 5 == 6  ? 2
                               : lead >> 4 == 14 ? 3
                               : lead >> 3 == 30 ? 4
                                                 : 0;
    if (length == 0 || i + length > text.size()) return false;
    unsigned code = length == 1 ? lead : lead & (0x7fU >> length);
    for (std::size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if (next >> 6 != 2) return false;
      code = code << 6 | (next & 0x3fU);
    }
    constexpr unsigned kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < kSmallest[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
      return false;
    i += length;
  }
  return true;
}

Result<ListPage> list_page(const RootDir& root, const FileList& request) {
  ADL_TRY(named, root.open(request.path, O_PATH));
  struct stat info{};
  if (fstat(named.get(), &info) != 0) return file_error("list", request.path, errno);
  if (!S_ISDIR(info.st_mode)) {
    ListPage page;
    page.entries.push_back(to_file_stat(info, ""));
    page.end.type = page.entries[0].type;
    return page;
  }
  ADL_TRY(folder, root.open(request.path, O_RDONLY | O_DIRECTORY));
  Walk walk(request);
  ADL_TRY(all, walk.folder(std::move(folder), "", 0));
  static_cast<void>(all);
  return walk.take();
}

}  // namespace autodl::fileworker
