// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/disk.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <boost/json.hpp>

#include <cerrno>

#include "base/crash_point.hpp"
#include "base/unique_fd.hpp"
#include "runtime/host_files.hpp"
#include "runtime/loop_device.hpp"
#include "runtime/mounts.hpp"

namespace autodl::runtime {
namespace {

namespace json = boost::json;

constexpr int kSpareFiles = 16;
constexpr off_t kSpareFileBytes = 16 << 10;

std::string to_text(const DiskRecord& record) {
  return json::serialize(json::object{{"size_bytes", record.size_bytes},
                                      {"slot", record.slot},
                                      {"image_digest", record.image_digest}});
}

Result<DiskRecord> parse_record(const std::string& path, const std::string& text) {
  try {
    const auto value = json::parse(text);
    const auto& object = value.as_object();
    return DiskRecord{object.at("size_bytes").to_number<std::int64_t>(),
                      object.at("slot").to_number<std::uint32_t>(),
                      std::string(object.at("image_digest").as_string())};
  } catch (const std::exception& failure) {
    return Error(ErrorKind::kInternal, "bad_record",
                 fmt::format("read disk record '{}': {}", path, failure.what()));
  }
}

std::int64_t promised_below(const std::string& folder) {
  std::int64_t total = 0;
  for (const auto& name : list_names(folder)) {
    struct stat info{};
    const auto path = folder + "/" + name;
    if (::lstat(path.c_str(), &info) != 0) continue;
    if (S_ISDIR(info.st_mode)) total += promised_below(path);
    if (S_ISREG(info.st_mode) && name.ends_with(".img"))
      total += std::max<std::int64_t>(0, info.st_size - info.st_blocks * 512);
  }
  return total;
}

}  // namespace

std::optional<std::int64_t> lacking_space(const HostSpace& space, std::int64_t size_bytes,
                                          std::int64_t reserve_bytes) {
  const auto left = space.free_bytes - space.promised_bytes - reserve_bytes;
  if (size_bytes <= left) return std::nullopt;
  return left;
}

std::string DiskStore::instance_folder(const InstanceId& id) const {
  return fmt::format("{}/m/{}", config_.run_dir, id.str());
}
std::string DiskStore::image_path(const InstanceId& id) const {
  return fmt::format("{}/disks/{}.img", config_.state_dir, id.str());
}
std::string DiskStore::record_path(const InstanceId& id) const {
  return fmt::format("{}/disks/{}.json", config_.state_dir, id.str());
}

Status DiskStore::prepare() {
  ADL_TRY_STATUS(make_folder(config_.state_dir + "/disks", 0700));
  ADL_TRY_STATUS(make_folder(config_.run_dir + "/m", 0711));
  ADL_TRY_STATUS(ensure_private_tree(config_.run_dir + "/m"));
  for (const auto& name : list_names(config_.state_dir + "/disks"))
    if (name.ends_with(".new")) ::unlink((config_.state_dir + "/disks/" + name).c_str());
  return {};
}

Status DiskStore::check_space(std::int64_t size_bytes) const {
  if (config_.allow_overcommit) return {};
  struct statvfs info{};
  if (::statvfs(config_.state_dir.c_str(), &info) != 0)
    return errno_error(fmt::format("ask for the space below '{}'", config_.state_dir), errno);
  const HostSpace space{static_cast<std::int64_t>(info.f_bavail * info.f_frsize),
                        promised_below(config_.state_dir)};
  const auto left = lacking_space(space, size_bytes, config_.host_reserve_bytes);
  if (!left) return {};
  return Error(ErrorKind::kExhausted, "no_space",
               fmt::format("a disk of {} MiB does not fit: the node has {} MiB left to promise",
                           size_bytes >> 20, std::max<std::int64_t>(0, *left) >> 20),
               "ask for a smaller disk, or release instances that are no longer needed");
}

Status DiskStore::ensure(const DiskSpec& spec) {
  if (spec.size_bytes < (std::int64_t{32} << 20)) {
    return Error(ErrorKind::kInvalid, "bad_disk_size",
                 fmt::format("disk of {} bytes: the least is 32 MiB", spec.size_bytes));
  }
  if (auto known = record(spec.id); known.ok() && known->slot != spec.slot) {
    return Error(ErrorKind::kConflict, "disk_conflict",
                 fmt::format("disk of {} belongs to slot {}, not {}", spec.id.str(), known->slot,
                             spec.slot));
  } else if (!known.ok()) {
    crash_point("runtime.disk_record.before");
    ADL_TRY_STATUS(
        write_durably(record_path(spec.id), to_text(DiskRecord{spec.size_bytes, spec.slot, {}})));
    crash_point("runtime.disk_record.after");
  }
  if (!path_exists(image_path(spec.id))) {
    const std::lock_guard lock(making_);
    ADL_TRY_STATUS(check_space(spec.size_bytes));
    ADL_TRY_STATUS(make_ext4_image(image_path(spec.id), spec.size_bytes));
  }
  ADL_TRY_STATUS(mount(spec.id));
  return make_folders(spec.id, spec.slot);
}

Status DiskStore::mount(const InstanceId& id) {
  ADL_TRY(known, record(id));
  const auto folder = instance_folder(id);
  // Only root and the instance's own root (its range's first gid) may pass.
  ADL_TRY_STATUS(make_folder(folder, 0710));
  if (::chown(folder.c_str(), 0, first_uid(known.slot)) != 0)
    return errno_error(fmt::format("give '{}' its group", folder), errno);
  return mount_ext4_image(image_path(id), mount_point(id));
}

Status DiskStore::make_folders(const InstanceId& id, std::uint32_t slot) {
  const auto disk = mount_point(id);
  const auto owner = std::int64_t{first_uid(slot)};
  ADL_TRY_STATUS(make_folder(disk, 0711));
  // The root's mode is the tenant's to change later: it is set once.
  if (!path_exists(disk + "/upper")) ADL_TRY_STATUS(make_folder(disk + "/upper", 0755, owner));
  if (!path_exists(disk + "/data")) ADL_TRY_STATUS(make_folder(disk + "/data", 0755, owner));
  ADL_TRY_STATUS(make_folder(disk + "/work", 0700));
  ADL_TRY_STATUS(make_folder(disk + "/etc", 0711));
  keep_spare(id);
  return {};
}

void DiskStore::keep_spare(const InstanceId& id) const {
  const auto folder = mount_point(id) + "/spare";
  ::mkdir(folder.c_str(), 0700);
  for (int i = 0; i < kSpareFiles; ++i) {
    const auto path = fmt::format("{}/{}", folder, i);
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd.valid() || ::posix_fallocate(fd.get(), 0, kSpareFileBytes) != 0) return;
  }
}

Status DiskStore::give_up_spare(const InstanceId& id) const {
  return remove_tree(mount_point(id) + "/spare");
}

Status DiskStore::unmount(const InstanceId& id) {
  const auto folder = instance_folder(id);
  ADL_TRY_STATUS(unmount_all(mount_point(id)));
  ::rmdir(mount_point(id).c_str());
  ::rmdir((folder + "/l").c_str());
  ::rmdir((folder + "/r").c_str());
  ::rmdir(folder.c_str());
  return {};
}

Status DiskStore::destroy(const InstanceId& id) {
  ADL_TRY_STATUS(unmount(id));
  crash_point("runtime.disk_unlink.before");
  for (const auto& path : {image_path(id) + ".new", image_path(id), record_path(id)})
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
      return errno_error(fmt::format("delete '{}'", path), errno);
  crash_point("runtime.disk_unlink.after");
  return {};
}

Result<DiskRecord> DiskStore::record(const InstanceId& id) const {
  auto text = read_small_file(record_path(id), 4096);
  if (!text.ok() && text.error().kind() == ErrorKind::kNotFound) {
    return Error(ErrorKind::kNotFound, "no_disk",
                 fmt::format("instance {} has no disk here", id.str()));
  }
  if (!text.ok()) return text.error();
  return parse_record(record_path(id), *text);
}

Status DiskStore::set_image(const InstanceId& id, const std::string& digest) {
  ADL_TRY(known, record(id));
  if (known.image_digest == digest) return {};
  if (!known.image_digest.empty()) {
    return Error(ErrorKind::kConflict, "root_conflict",
                 fmt::format("instance {} has a root of image {}, not {}", id.str(),
                             known.image_digest, digest));
  }
  known.image_digest = digest;
  crash_point("runtime.root_record.before");
  ADL_TRY_STATUS(write_durably(record_path(id), to_text(known)));
  crash_point("runtime.root_record.after");
  return {};
}

Result<std::int64_t> DiskStore::used_bytes(const InstanceId& id) const {
  struct statvfs info{};
  const auto folder = mount_point(id);
  if (is_mount_point(folder) && ::statvfs(folder.c_str(), &info) == 0)
    return static_cast<std::int64_t>((info.f_blocks - info.f_bfree) * info.f_frsize);
  struct stat image{};
  if (::stat(image_path(id).c_str(), &image) != 0) {
    return Error(ErrorKind::kNotFound, "no_disk",
                 fmt::format("instance {} has no disk here", id.str()));
  }
  return std::int64_t{image.st_blocks} * 512;
}

std::vector<InstanceId> DiskStore::list() const {
  std::vector<InstanceId> ids;
  for (const auto& name : list_names(config_.state_dir + "/disks"))
    if (name.ends_with(".json")) ids.emplace_back(name.substr(0, name.size() - 5));
  return ids;
}

}  // namespace autodl::runtime
