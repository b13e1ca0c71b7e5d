// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Loop devices: an image file as a block device that goes away by itself with its last user.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace autodl::runtime {

struct LoopDevice {
  std::string path;  // "/dev/loop7"
  UniqueFd fd;       // keeps it until the mount holds it
};

// The device that already has this file, or a new one (autoclear, direct I/O where the file system
// below can). One file never gets two devices: two mounts of one ext4 would destroy it.
Result<LoopDevice> attach_loop(const std::string& image_path);

// An ext4 image with a hard size, sparse and lazily initialised; made under a temporary name, so
// that image_path exists whole or not at all.
Status make_ext4_image(const std::string& image_path, std::int64_t size_bytes);

// Mounts it (nosuid, nodev, noatime, discard). Already mounted is fine.
Status mount_ext4_image(const std::string& image_path, const std::string& mount_point);

}  // namespace autodl::runtime
