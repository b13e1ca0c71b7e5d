// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// RealRuntimeTest: a fixture on real runc, in folders of its own, that runs shell jobs as PID 1 of
// busybox instances and checks after each test that the machine holds what it held before.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "runtime/host_files.hpp"
#include "runtime/mounts.hpp"
#include "runtime/process.hpp"
#include "runtime/runc_runtime.hpp"

namespace autodl {

inline constexpr const char* kBase = "/var/tmp/autodl-rt";
inline constexpr const char* kBusybox = "autodl/busybox:test";
inline constexpr const char* kLayers40 = "autodl/layers40:test";

inline RuntimeConfig real_config() {
  RuntimeConfig config;
  config.state_dir = std::string(kBase) + "/state";
  config.run_dir = std::string(kBase) + "/run";
  config.toolbox_dir = std::string(kBase) + "/toolbox";
  config.image_root = "/var/cache/autodl/test/images";
  config.seccomp_path = std::string(kBase) + "/seccomp.json";
  config.name_prefix = "rt";
  config.address_pool = "100.127.0.0/16";
  config.uid_base = 900'000'000;
  // The tenant's program: the test writes it into the data folder before the start.
  config.init_argv = {"/bin/sh", "/root/autodl-tmp/job"};
  return config;
}

struct Footprint {
  std::size_t mounts = 0, loops = 0, veths = 0, cgroups = 0, containers = 0;
  bool operator==(const Footprint&) const = default;
};

inline void PrintTo(const Footprint& print, std::ostream* out) {
  *out << fmt::format("mounts {} loops {} veths {} cgroups {} containers {}", print.mounts,
                      print.loops, print.veths, print.cgroups, print.containers);
}

inline Footprint footprint(const RuntimeConfig& config) {
  Footprint print;
  const auto table = runtime::read_small_file("/proc/self/mountinfo", 16U << 20).value_or("");
  for (const auto& entry : runtime::parse_mountinfo(table))
    if (entry.mount_point.starts_with(config.run_dir + "/m/")) ++print.mounts;
  for (const auto& name : runtime::list_names("/sys/block"))
    if (runtime::read_small_file("/sys/block/" + name + "/loop/backing_file")
            .value_or("")
            .starts_with(config.state_dir))
      ++print.loops;
  for (const auto& name : runtime::list_names("/sys/class/net"))
    if (name.starts_with(config.name_prefix + "-")) ++print.veths;
  for (const auto& controller : runtime::list_names("/sys/fs/cgroup"))
    for (const auto& name :
         runtime::list_names("/sys/fs/cgroup/" + controller + "/" + config.name_prefix))
      if (name.starts_with("01")) ++print.cgroups;
  print.containers = runtime::list_names(config.run_dir + "/c").size() +
                     runtime::list_names(config.run_dir + "/runc").size();
  return print;
}

class RealRuntimeTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    using runtime::run_checked;
    if (::geteuid() != 0) return;
    runtime::ProcessOptions options;
    options.deadline = std::chrono::minutes{10};
    ASSERT_TRUE(runtime::make_folder(std::string(kBase) + "/toolbox", 0755).ok());
    const std::string source = ADL_SOURCE_DIR;
    for (const char* image : {kBusybox, kLayers40}) {
      auto built = run_checked(
          {source + "/scripts/build-image", image, "--root", real_config().image_root}, options);
      ASSERT_TRUE(built.ok()) << built.error().message();
    }
    auto section = run_checked({source + "/scripts/make-seccomp"}, options);
    ASSERT_TRUE(section.ok()) << section.error().message();
    ASSERT_TRUE(runtime::write_atomically(real_config().seccomp_path, section->out).ok());
  }

  // What an installation has as long as it is there: its private mount tree and its table.
  static void TearDownTestSuite() {
    if (::geteuid() != 0) return;
    EXPECT_TRUE(runtime::unmount_all(real_config().run_dir + "/m").ok());
    EXPECT_TRUE(runtime::run_checked({"nft", "delete", "table", "inet", "autodl_rt"}).ok());
  }

  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    make_runtime();
    before_ = footprint(config_);
  }

  void TearDown() override {
    if (!runtime_) return;
    for (const auto& [id, slot] : used_) {
      const auto gone = runtime_->destroy(id);
      expect_ok(gone);
    }
    EXPECT_EQ(footprint(config_), before_);
    runtime_.reset();
  }

  // A new object, as after a restart of the node.
  void make_runtime() {
    runtime_.reset();
    runtime_ = std::make_unique<RuncRuntime>(config_);
    const auto ready = runtime_->prepare();
    ASSERT_TRUE(ready.ok()) << ready.error().message();
  }

  static void expect_ok(const Status& status) {
    if (!status.ok()) ADD_FAILURE() << status.error().message();
  }

  static std::string code_of(const Status& status) {
    return status.ok() ? "ok" : status.error().code();
  }

  InstanceId instance(int number) {
    const InstanceId id(fmt::format("01RTTEST{:018}", number));
    used_[id] = static_cast<std::uint32_t>(number);
    return id;
  }
  static RunId run_of(int number) { return RunId(fmt::format("01RTRUN0{:018}", number)); }

  ContainerSpec spec_for(const InstanceId& id, const RunId& run) const {
    ContainerSpec spec;
    spec.id = id;
    spec.run = run;
    spec.slot = used_.at(id);
    spec.hostname = "autodl-001";
    spec.run_key = std::string(32, 'k');
    spec.memory_bytes = std::int64_t{256} << 20;
    return spec;
  }

  // Disk, root and the job, ready for create_container.
  void prepare_instance(const InstanceId& id, const std::string& job, const char* image = kBusybox,
                        std::int64_t disk_mib = 128) {
    const auto slot = used_.at(id);
    auto info = runtime_->ensure_image(image, {});
    ASSERT_TRUE(info.ok()) << info.error().message();
    expect_ok(runtime_->ensure_disk({id, disk_mib << 20, slot}));
    expect_ok(runtime_->ensure_root({id, info->digest, slot}));
    write_job(id, job);
  }

  void write_job(const InstanceId& id, const std::string& job) {
    expect_ok(runtime::write_atomically(disk(id) + "/data/job", job + "\n", 0644));
  }

  std::string disk(const InstanceId& id) const {
    return fmt::format("{}/m/{}/d", config_.run_dir, id.str());
  }

  void start(const InstanceId& id, const RunId& run, std::int64_t memory_mib = 256) {
    auto spec = spec_for(id, run);
    spec.memory_bytes = memory_mib << 20;
    const auto created = runtime_->create_container(spec);
    ASSERT_TRUE(created.ok()) << created.error().message();
    expect_ok(runtime_->start_container(id, run));
  }

  // Until PID 1 has ended.
  ContainerStatus await_end(const InstanceId& id, int limit_ms = 60'000) {
    auto fd = runtime_->watch(id);
    if (!fd.ok()) ADD_FAILURE() << fd.error().message();
    if (!fd.ok()) return {};
    pollfd item{fd->get(), POLLIN, 0};
    EXPECT_EQ(::poll(&item, 1, limit_ms), 1) << "the container did not end";
    auto status = runtime_->status(id);
    EXPECT_TRUE(status.ok());
    return status.value_or({});
  }

  // Waits for a file that the job makes.
  bool await_file(const std::string& path) const {
    for (int turn = 0; turn < 1000; ++turn) {
      if (runtime::path_exists(path)) return true;
      ::poll(nullptr, 0, 10);
    }
    return false;
  }

  std::string log_of(const InstanceId& id, const RunId& run) {
    return runtime::read_small_file(runtime_->log_path(id, run), 4U << 20).value_or("");
  }

  RuntimeConfig config_ = real_config();
  std::unique_ptr<RuncRuntime> runtime_;
  std::map<InstanceId, std::uint32_t> used_;
  Footprint before_;
};

}  // namespace autodl
