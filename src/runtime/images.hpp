// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// ImageStore: OCI images by podman, in a storage of our own (image_root), with its own
// configuration, so that the host's /etc/containers does not matter. An image that an instance uses
// is pinned by a record: its digest, what of its configuration we use, and its layers' folders.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "runtime/config.hpp"
#include "runtime/process.hpp"
#include "runtime/runtime.hpp"

namespace autodl::runtime {

struct StoredImage {
  ImageInfo info;
  std::vector<std::string> layers;  // folders, top first, the veil before them
};

// Whether a reference may be given to podman: no option, no transport, no path.
Status check_reference(std::string_view reference);
// What `podman image inspect` printed → image; layers without veil. Hostile: bounded.
Result<StoredImage> parse_inspect(std::string_view text, const std::string& reference);
// unknown_image or pull_failed, from what `podman pull` said.
Error pull_error(const std::string& reference, std::string_view words);

class ImageStore {
 public:
  explicit ImageStore(const RuntimeConfig& config);

  Status prepare();
  Result<StoredImage> ensure(const std::string& reference, const PullProgress& progress);
  Result<StoredImage> pinned(const std::string& digest) const;  // unknown_image
  // Asks podman only where the storage has changed since the last call.
  Result<std::vector<ImageInfo>> list();

 private:
  ProcessOptions podman_options(std::chrono::milliseconds deadline) const;
  std::vector<std::string> podman(std::vector<std::string> arguments) const;
  Result<StoredImage> inspect(const std::string& reference) const;
  Status pull(const std::string& reference, const PullProgress& progress) const;
  Status pin(StoredImage& image) const;
  std::string record_path(const std::string& digest) const;
  // Changes whenever the storage's set of images does.
  std::string storage_stamp() const;

  const RuntimeConfig& config_;
  std::string root_;
  std::string runroot_;
  std::mutex mutex_;  // guards what follows
  std::string stamp_;
  std::map<std::string, StoredImage> by_reference_;
  std::string list_stamp_;  // the storage's when list_ was made
  std::vector<ImageInfo> list_;
  std::mutex veil_mutex_;  // one veil is made at a time
};

}  // namespace autodl::runtime
