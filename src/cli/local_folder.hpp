// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// LocalFolder: where a download may write. A listing comes from inside an instance, so its names
// are hostile: every step below the folder is opened without following links, and nothing is ever
// written outside it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace autodl::cli {

// The components of a listed name; kInvalid "bad_path" where it could leave the folder.
Result<std::vector<std::string>> path_parts(std::string_view relative);

// Whether a link at these components points below the folder, whatever other such links its target
// leads through: ".." only at its beginning, and not more often than it is deep.
bool link_stays_inside(const std::vector<std::string>& parts, std::string_view target);

class LocalFolder {
 public:
  // Makes the folder and its parents; links on the way to it are the caller's and are followed.
  static Result<LocalFolder> open(const std::string& path);

  // The folder of these components, made where it is missing.
  Result<UniqueFd> folder(const std::vector<std::string>& parts) const;
  Status link(const std::vector<std::string>& parts, const std::string& target) const;
  const std::string& path() const { return path_; }

 private:
  LocalFolder(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  UniqueFd fd_;
};

// A file under a temporary name in an open folder; gone unless it is finished.
class PartFile {
 public:
  static Result<PartFile> make(const UniqueFd& folder, std::string name);
  PartFile(PartFile&& other) noexcept = default;
  PartFile& operator=(PartFile&&) = delete;
  PartFile(const PartFile&) = delete;
  ~PartFile();

  Status append(std::string_view bytes);
  Status finish(std::uint32_t mode, std::int64_t mtime_ms);  // renamed into place

 private:
  PartFile(int folder, std::string name, std::string temporary, UniqueFd fd)
      : folder_(folder),
        name_(std::move(name)),
        temporary_(std::move(temporary)),
        fd_(std::move(fd)) {}

  int folder_;  // the caller's, open as long as this lives
  std::string name_, temporary_;
  UniqueFd fd_;
};

}  // namespace autodl::cli
