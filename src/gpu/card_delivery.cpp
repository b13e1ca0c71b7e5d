// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "gpu/card_delivery.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <set>

#include "base/unique_fd.hpp"
#include "gpu/elf_soname.hpp"

namespace autodl {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 5> kLibraryFolders = {"usr/lib/x86_64-linux-gnu",
                                                        "usr/lib/x86_64-linux-gnu/nvidia/current",
                                                        "usr/lib64", "usr/lib64/nvidia", "usr/lib"};
constexpr std::array<const char*, 2> kBinaries = {"nvidia-smi", "nvidia-debugdump"};
// nvidia-modeset and /dev/dri are for screens: tenants compute.
constexpr std::array<const char*, 3> kControlNodes = {"nvidiactl", "nvidia-uvm",
                                                      "nvidia-uvm-tools"};
constexpr std::chrono::milliseconds kAskDeadline{5'000};

bool is_version(const std::string& text) {
  return !text.empty() && text.size() < 32 && text.front() != '.' && text.back() != '.' &&
         text.find("..") == std::string::npos &&
         text.find_first_not_of("0123456789.") == std::string::npos;
}

std::string name_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

DeviceNode node_at(const std::string& path) {
  DeviceNode node{.host_path = path, .container_path = path};
  struct stat info{};
  if (stat(path.c_str(), &info) == 0 && S_ISCHR(info.st_mode)) {
    node.major = major(info.st_rdev);
    node.minor = minor(info.st_rdev);
  }
  return node;
}

Status make_empty_file(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd.valid()) return errno_error(fmt::format("make '{}'", path), errno);
  return {};
}

Status make_link(const std::string& target, const std::string& path) {
  if (symlink(target.c_str(), path.c_str()) != 0 && errno != EEXIST)
    return errno_error(fmt::format("link '{}'", path), errno);
  return {};
}

Status fill_folder(const std::string& folder, const DriverFiles& files) {
  std::error_code error;
  fs::create_directories(folder + "/bin", error);
  if (error) return errno_error(fmt::format("make '{}'", folder), error.value());
  for (const auto& library : files.libraries) {
    const auto name = name_of(library.path);
    ADL_TRY_STATUS(make_empty_file(folder + "/" + name));
    if (library.soname.empty() || library.soname == name) continue;
    ADL_TRY_STATUS(make_link(name, folder + "/" + library.soname));
    // "libcuda.so", which some programs open, leads to the soname.
    if (const auto dot = library.soname.find(".so."); dot != std::string::npos)
      ADL_TRY_STATUS(make_link(library.soname, folder + "/" + library.soname.substr(0, dot + 3)));
  }
  for (const auto& binary : files.binaries)
    ADL_TRY_STATUS(make_empty_file(folder + "/bin/" + name_of(binary)));
  return {};
}

}  // namespace

Result<DriverFiles> find_driver_files(const std::string& root, const std::string& version) {
  if (!is_version(version))
    return Error(ErrorKind::kUnavailable, "bad_driver_version",
                 fmt::format("'{}' is no driver version", version));
  DriverFiles files;
  files.version = version;
  const auto suffix = ".so." + version;
  std::set<std::string> seen;
  for (const char* folder : kLibraryFolders) {
    std::error_code error;
    for (fs::directory_iterator entry(fs::path(root) / folder, error), end; !error && entry != end;
         entry.increment(error)) {
      const auto name = entry->path().filename().string();
      std::error_code ignored;
      if (!name.ends_with(suffix) || !name.starts_with("lib") || entry->is_symlink(ignored) ||
          !entry->is_regular_file(ignored) || !seen.insert(name).second)
        continue;
      files.libraries.push_back(
          {entry->path().string(), elf_soname(entry->path().string()).value_or("")});
    }
  }
  std::sort(files.libraries.begin(), files.libraries.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  if (!seen.contains("libcuda" + suffix))
    return Error(ErrorKind::kUnavailable, "driver_files_missing",
                 fmt::format("no libcuda{} in {}", suffix, fmt::join(kLibraryFolders, ", ")),
                 "install the user-space libraries of the version that the kernel module has");
  for (const char* name : kBinaries)
    if (const auto path = (fs::path(root) / "usr/bin" / name).string();
        access(path.c_str(), X_OK) == 0)
      files.binaries.push_back(path);
  for (const char* name : kControlNodes)
    if (const auto path = (fs::path(root) / "dev" / name).string(); access(path.c_str(), F_OK) == 0)
      files.control.push_back(node_at(path));
  return files;
}

Result<CardDelivery> plan_delivery(const Inventory& inventory, const std::vector<CardId>& cards,
                                   const DriverFiles& files, const std::string& folder) {
  CardDelivery delivery;
  if (cards.empty()) return delivery;
  for (const auto& id : cards) {
    const auto found = std::find_if(inventory.cards.begin(), inventory.cards.end(),
                                    [&](const CardInfo& card) { return card.id == id; });
    if (found == inventory.cards.end() || !found->minor || !found->problem.empty())
      return Error(
          ErrorKind::kNotFound, "unknown_card",
          found == inventory.cards.end()
              ? fmt::format("this machine has no card '{}'", id.str())
              : fmt::format("card '{}' can't be used: {}", id.str(),
                            found->problem.empty() ? "it has no minor number" : found->problem));
    delivery.devices.push_back(node_at(fmt::format("/dev/nvidia{}", *found->minor)));
  }
  delivery.devices.insert(delivery.devices.end(), files.control.begin(), files.control.end());
  const std::string inside = kDriverFolderInside;
  delivery.mounts.push_back({.host_path = folder, .container_path = inside, .is_folder = true});
  for (const auto& library : files.libraries)
    delivery.mounts.push_back({library.path, inside + "/" + name_of(library.path), false});
  for (const auto& binary : files.binaries)
    delivery.mounts.push_back({binary, inside + "/bin/" + name_of(binary), false});
  return delivery;
}

Result<std::string> prepare_driver_folder(const std::string& base, const DriverFiles& files) {
  if (!is_version(files.version))
    return Error(ErrorKind::kUnavailable, "bad_driver_version",
                 fmt::format("'{}' is no driver version", files.version));
  const auto folder = base + "/" + files.version;
  std::error_code error;
  if (fs::is_directory(folder, error)) {
    // The same version with more files (a package was added): only ever added to.
    ADL_TRY_STATUS(fill_folder(folder, files));
    return folder;
  }
  const auto part = fmt::format("{}.new.{}", folder, getpid());
  fs::remove_all(part, error);
  ADL_TRY_STATUS(fill_folder(part, files));
  if (rename(part.c_str(), folder.c_str()) != 0 && errno != EEXIST && errno != ENOTEMPTY)
    return errno_error(fmt::format("rename '{}'", part), errno);
  fs::remove_all(part, error);
  return folder;
}

Result<CardDelivery> DriverCardProvider::prepare(const InstanceId&,
                                                 const std::vector<CardId>& cards) {
  if (cards.empty()) return CardDelivery{};
  ADL_TRY(inventory, inventory_.query(kAskDeadline));
  ADL_TRY(files, find_driver_files(root_, inventory.driver_version));
  ADL_TRY(folder, prepare_driver_folder(folder_, files));
  return plan_delivery(inventory, cards, files, folder);
}

}  // namespace autodl
