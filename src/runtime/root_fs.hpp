// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// RootFs: an instance's root file system at run_dir/m/ID/r: the image's layers, mapped to the
// instance's ids, under its own upper directory. Mounted once and adopted after a restart.
#pragma once

#include <string>

#include "base/result.hpp"
#include "runtime/disk.hpp"
#include "runtime/images.hpp"
#include "runtime/runtime.hpp"

namespace autodl::runtime {

class RootFs {
 public:
  RootFs(DiskStore& disks, ImageStore& images) : disks_(disks), images_(images) {}

  Status ensure(const RootSpec& spec);   // unknown_image, root_conflict, root_busy, root_stale
  Status release(const InstanceId& id);  // root and disk unmounted; the disk stays
  bool mounted(const InstanceId& id) const;
  std::string path(const InstanceId& id) const { return disks_.instance_folder(id) + "/r"; }

  // Namespaces made for the purpose, for an instance that does not run: its root with the data
  // folder at /root/autodl-tmp, owned by its ids.
  Result<ContainerRuntime::Namespaces> make_namespaces(const InstanceId& id, std::uint32_t slot);

 private:
  DiskStore& disks_;
  ImageStore& images_;
};

}  // namespace autodl::runtime
