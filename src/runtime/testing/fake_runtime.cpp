// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/testing/fake_runtime.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

namespace autodl {
namespace {

Error conflict(std::string code, const InstanceId& id) {
  return Error(ErrorKind::kConflict, std::move(code), fmt::format("instance {}", id.str()));
}

}  // namespace

void FakeRuntime::fail_next(const std::string& call, Error error, int times) {
  for (int time = 0; time < times; ++time) failures_[call].push_back(error);
}
void FakeRuntime::cut_next(const std::string& call) {
  cuts_.insert(call);
}
void FakeRuntime::set_duration(const std::string& call, std::chrono::nanoseconds time) {
  durations_[call] = time;
}
void FakeRuntime::add_image(ImageInfo image) {
  auto reference = image.reference;
  images_.insert_or_assign(std::move(reference), std::move(image));
}

Status FakeRuntime::begin(const std::string& call, const InstanceId& id) {
  calls_.push_back(id.empty() ? call : call + " " + id.str());
  if (on_call) {
    const auto time = durations_.find(call);
    on_call(call, id, time == durations_.end() ? std::chrono::nanoseconds{} : time->second);
  }
  const auto failure = failures_.find(call);
  if (failure == failures_.end() || failure->second.empty()) return {};
  const auto error = failure->second.front();
  failure->second.erase(failure->second.begin());
  return error;
}

Status FakeRuntime::end(const std::string& call) {
  if (cuts_.erase(call) > 0) throw Cut{};
  return {};
}

void FakeRuntime::finish(Container& container) {
  container.status.phase = ContainerPhase::kExited;
  container.status.pid = 0;
  ::eventfd_write(container.ended.get(), 1);
}

void FakeRuntime::end_container(const InstanceId& id, std::optional<int> exit_code,
                                std::string record) {
  const auto found = containers_.find(id);
  if (found == containers_.end() || found->second.status.phase == ContainerPhase::kExited) return;
  found->second.status.exit_code = exit_code;
  found->second.status.exit_record = std::move(record);
  finish(found->second);
}

void FakeRuntime::kill_out_of_memory(const InstanceId& id) {
  const auto found = containers_.find(id);
  if (found == containers_.end()) return;
  found->second.status.out_of_memory = true;
  found->second.status.memory_peak_bytes = found->second.spec.memory_bytes;
  end_container(id, 137);
}

void FakeRuntime::reboot() {
  containers_.clear();
  for (auto& [id, disk] : disks_) disk.mounted = false;
}

void FakeRuntime::lose_container(const InstanceId& id) {
  containers_.erase(id);
}

int FakeRuntime::starts_of(const RunId& run) const {
  const auto found = starts_.find(run);
  return found == starts_.end() ? 0 : found->second;
}

bool FakeRuntime::running(const InstanceId& id) const {
  const auto found = containers_.find(id);
  return found != containers_.end() && found->second.status.phase == ContainerPhase::kRunning;
}

std::optional<ContainerSpec> FakeRuntime::spec_of(const InstanceId& id) const {
  const auto found = containers_.find(id);
  if (found == containers_.end()) return std::nullopt;
  return found->second.spec;
}

Status FakeRuntime::prepare() {
  ADL_TRY_STATUS(begin("prepare", {}));
  return end("prepare");
}

Result<std::vector<FoundInstance>> FakeRuntime::scan() {
  ADL_TRY_STATUS(begin("scan", {}));
  std::map<InstanceId, FoundInstance> found;
  for (const auto& [id, disk] : disks_) found[id] = FoundInstance{id, true, disk.mounted, {}};
  for (const auto& [id, container] : containers_) {
    found[id].id = id;
    found[id].container = container.status;
  }
  std::vector<FoundInstance> list;
  for (auto& [id, item] : found) list.push_back(std::move(item));
  return list;
}

Result<ImageInfo> FakeRuntime::ensure_image(const std::string& reference,
                                            const PullProgress& progress) {
  ADL_TRY_STATUS(begin("ensure_image", {}));
  const auto found = images_.find(reference);
  if (found == images_.end())
    return Error(ErrorKind::kNotFound, "unknown_image",
                 fmt::format("image '{}' is not known here", reference));
  if (progress) progress("ready", 100);
  ADL_TRY_STATUS(end("ensure_image"));
  return found->second;
}

Result<std::vector<ImageInfo>> FakeRuntime::list_images() {
  ADL_TRY_STATUS(begin("list_images", {}));
  std::vector<ImageInfo> list;
  for (const auto& [reference, image] : images_) list.push_back(image);
  return list;
}

Status FakeRuntime::ensure_disk(const DiskSpec& spec) {
  ADL_TRY_STATUS(begin("ensure_disk", spec.id));
  const auto found = disks_.find(spec.id);
  if (found != disks_.end() && found->second.slot != spec.slot)
    return conflict("disk_conflict", spec.id);
  if (found == disks_.end()) {
    std::int64_t promised = 0;
    for (const auto& [id, disk] : disks_) promised += disk.size_bytes;
    if (promised + spec.size_bytes > host_space_)
      return Error(ErrorKind::kExhausted, "no_space", "the disk does not fit");
    disks_[spec.id] = Disk{spec.size_bytes, spec.slot, {}, false};
  }
  return end("ensure_disk");
}

Status FakeRuntime::ensure_root(const RootSpec& spec) {
  ADL_TRY_STATUS(begin("ensure_root", spec.id));
  const auto found = disks_.find(spec.id);
  if (found == disks_.end()) return Error(ErrorKind::kNotFound, "no_disk", "no disk");
  auto& disk = found->second;
  if (disk.slot != spec.slot) return conflict("disk_conflict", spec.id);
  if (!disk.image_digest.empty() && disk.image_digest != spec.image_digest)
    return conflict("root_conflict", spec.id);
  disk.image_digest = spec.image_digest;
  disk.mounted = true;
  return end("ensure_root");
}

Status FakeRuntime::create_container(const ContainerSpec& spec) {
  ADL_TRY_STATUS(begin("create_container", spec.id));
  if (const auto found = containers_.find(spec.id); found != containers_.end()) {
    if (found->second.spec.run != spec.run) return conflict("other_container", spec.id);
    if (found->second.status.phase == ContainerPhase::kExited)
      return conflict("already_ran", spec.id);
    return end("create_container");
  }
  const auto disk = disks_.find(spec.id);
  if (disk == disks_.end()) return Error(ErrorKind::kNotFound, "no_disk", "no disk");
  if (!disk->second.mounted) return conflict("no_root", spec.id);
  Container container;
  container.spec = spec;
  container.status.phase = ContainerPhase::kCreated;
  container.status.run = spec.run;
  container.status.pid = next_pid_++;
  container.ended = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  containers_.insert_or_assign(spec.id, std::move(container));
  return end("create_container");
}

Status FakeRuntime::start_container(const InstanceId& id, const RunId& run) {
  ADL_TRY_STATUS(begin("start_container", id));
  const auto found = containers_.find(id);
  if (found == containers_.end() || found->second.spec.run != run)
    return conflict("no_container", id);
  auto& status = found->second.status;
  if (status.phase == ContainerPhase::kExited) return conflict("already_ran", id);
  if (status.phase == ContainerPhase::kCreated) {
    status.phase = ContainerPhase::kRunning;
    ++starts_[run];
  }
  return end("start_container");
}

Result<ContainerStatus> FakeRuntime::status(const InstanceId& id) {
  ADL_TRY_STATUS(begin("status", id));
  const auto found = containers_.find(id);
  return found == containers_.end() ? ContainerStatus{} : found->second.status;
}

Result<UniqueFd> FakeRuntime::watch(const InstanceId& id) {
  ADL_TRY_STATUS(begin("watch", id));
  const auto found = containers_.find(id);
  if (found == containers_.end()) return conflict("no_container", id);
  UniqueFd copy(::dup(found->second.ended.get()));
  if (!copy.valid()) return errno_error("copy a descriptor", errno);
  return copy;
}

Status FakeRuntime::kill_container(const InstanceId& id) {
  ADL_TRY_STATUS(begin("kill_container", id));
  end_container(id, 137);
  return end("kill_container");
}

Status FakeRuntime::remove_container(const InstanceId& id) {
  ADL_TRY_STATUS(begin("remove_container", id));
  end_container(id, 137);
  containers_.erase(id);
  return end("remove_container");
}

Status FakeRuntime::release_root(const InstanceId& id) {
  ADL_TRY_STATUS(begin("release_root", id));
  if (containers_.contains(id)) return conflict("container_exists", id);
  if (const auto found = disks_.find(id); found != disks_.end()) found->second.mounted = false;
  return end("release_root");
}

Status FakeRuntime::destroy(const InstanceId& id) {
  ADL_TRY_STATUS(begin("destroy", id));
  end_container(id, 137);
  containers_.erase(id);
  disks_.erase(id);
  return end("destroy");
}

std::string FakeRuntime::address_of(std::uint32_t slot) {
  return fmt::format("100.64.{}.{}", (slot + 2) / 256, (slot + 2) % 256);
}

Result<ContainerRuntime::Namespaces> FakeRuntime::namespaces(const InstanceId& id, std::uint32_t) {
  ADL_TRY_STATUS(begin("namespaces", id));
  return Error(ErrorKind::kUnsupported, "no_namespaces", "the fake runtime has no namespaces");
}

std::string FakeRuntime::log_path(const InstanceId& id, const RunId& run) {
  return fmt::format("/fake/logs/{}/{}.log", id.str(), run.str());
}

Result<std::int64_t> FakeRuntime::disk_used_bytes(const InstanceId& id) {
  ADL_TRY_STATUS(begin("disk_used_bytes", id));
  if (!disks_.contains(id)) return Error(ErrorKind::kNotFound, "no_disk", "no disk");
  return std::int64_t{1} << 20;
}

std::optional<std::int64_t> FakeRuntime::cpu_time_ns(const InstanceId& id) {
  if (!running(id)) return std::nullopt;
  return 0;
}

}  // namespace autodl
