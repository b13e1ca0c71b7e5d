// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// RuncRuntime: ContainerRuntime on real runc. Root only, in the host's mount namespace. It keeps no
// state of its own in memory that matters: everything is found again on disk, in the mount table,
// in cgroups and in /proc, so a new object after kill -9 sees what the old one made.
//
// Layout: state_dir/{disks,logs,pins,veils,images}, run_dir/{m,c,runc}; see disk.hpp, log_disk.hpp,
// images.hpp, container.hpp.
#pragma once

#include "runtime/cgroups.hpp"
#include "runtime/config.hpp"
#include "runtime/container.hpp"
#include "runtime/disk.hpp"
#include "runtime/images.hpp"
#include "runtime/log_disk.hpp"
#include "runtime/network.hpp"
#include "runtime/root_fs.hpp"
#include "runtime/runtime.hpp"

namespace autodl {

using runtime::RuntimeConfig;  // NOLINT(misc-unused-using-decls): for those who build one

class RuncRuntime final : public ContainerRuntime {
 public:
  explicit RuncRuntime(RuntimeConfig config);

  Status prepare() override;
  Result<std::vector<FoundInstance>> scan() override;
  Result<ImageInfo> ensure_image(const std::string& reference,
                                 const PullProgress& progress) override;
  Result<std::vector<ImageInfo>> list_images() override;
  Status ensure_disk(const DiskSpec& spec) override;
  Status ensure_root(const RootSpec& spec) override;
  Status create_container(const ContainerSpec& spec) override;
  Status start_container(const InstanceId& id, const RunId& run) override;
  Result<ContainerStatus> status(const InstanceId& id) override;
  Result<UniqueFd> watch(const InstanceId& id) override;
  Status kill_container(const InstanceId& id) override;
  Status remove_container(const InstanceId& id) override;
  Status release_root(const InstanceId& id) override;
  Status destroy(const InstanceId& id) override;
  std::string address_of(std::uint32_t slot) override;
  Result<Namespaces> namespaces(const InstanceId& id, std::uint32_t slot) override;
  std::string log_path(const InstanceId& id, const RunId& run) override;
  Result<std::int64_t> disk_used_bytes(const InstanceId& id) override;
  std::optional<std::int64_t> cpu_time_ns(const InstanceId& id) override;

 private:
  Status check_machine() const;
  Status clean_up();
  Status check_spec(const ContainerSpec& spec) const;
  Status write_instance_files(const ContainerSpec& spec) const;
  Result<runtime::BundleSpec> bundle_for(const ContainerSpec& spec) const;
  Status build_container(const ContainerSpec& spec);

  RuntimeConfig config_;
  runtime::Cgroups cgroups_;
  runtime::DiskStore disks_;
  runtime::ImageStore images_;
  runtime::RootFs roots_;
  runtime::LogStore logs_;
  runtime::Network network_;
  runtime::Containers containers_;
  boost::json::value seccomp_;
};

}  // namespace autodl
