// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/cgroups.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include "base/unique_fd.hpp"
#include "runtime/host_files.hpp"

namespace autodl::runtime {
namespace {

constexpr std::chrono::seconds kRemoveDeadline{10};

std::int64_t leading_number(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::int64_t number_in(const std::string& path) {
  return leading_number(read_small_file(path, 64).value_or("0"));
}

void write_value(const std::string& path, std::string_view value) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (fd.valid()) static_cast<void>(::write(fd.get(), value.data(), value.size()));
}

// The group and those below it, deepest first.
std::vector<std::string> tree_of(const std::string& folder) {
  std::vector<std::string> all;
  std::error_code failed;
  std::filesystem::recursive_directory_iterator entry(folder, failed);
  for (; !failed && entry != std::filesystem::recursive_directory_iterator();
       entry.increment(failed))
    if (entry->is_directory(failed) && !entry->is_symlink(failed)) all.push_back(entry->path());
  std::sort(all.rbegin(), all.rend());
  all.push_back(folder);
  return all;
}

}  // namespace

std::int64_t parse_oom_kills(std::string_view text) {
  const auto at = text.starts_with("oom_kill ") ? 0 : text.find("\noom_kill ");
  if (at == std::string_view::npos) return 0;
  return leading_number(text.substr(text.find(' ', at) + 1));
}

Cgroups::Cgroups(std::string root, std::string prefix)
    : root_(std::move(root)),
      prefix_(std::move(prefix)),
      unified_(path_exists(root_ + "/cgroup.controllers")) {}

std::string Cgroups::controller_folder(const char* controller, const std::string& id) const {
  return unified_ ? fmt::format("{}/{}/{}", root_, prefix_, id)
                  : fmt::format("{}/{}/{}/{}", root_, controller, prefix_, id);
}

bool Cgroups::has_swap_accounting() const {
  return !unified_ && path_exists(root_ + "/memory/memory.memsw.limit_in_bytes");
}

std::vector<std::string> Cgroups::folders(const std::string& id) const {
  std::vector<std::string> found;
  std::set<std::string> seen;  // cpu and cpuacct may be one and the same
  if (unified_) {
    if (const auto path = controller_folder("", id); path_exists(path)) found.push_back(path);
    return found;
  }
  for (const auto& controller : list_names(root_)) {
    const auto path = controller_folder(controller.c_str(), id);
    std::error_code failed;
    const auto real = std::filesystem::canonical(path, failed);
    if (!failed && seen.insert(real.string()).second) found.push_back(real.string());
  }
  return found;
}

std::vector<int> Cgroups::processes(const std::string& id) const {
  std::set<int> pids;
  for (const auto& folder : folders(id)) {
    for (const auto& group : tree_of(folder)) {
      const auto text = read_small_file(group + "/cgroup.procs").value_or("");
      for (std::size_t at = 0; at < text.size();
           at = std::min(text.find('\n', at), text.size() - 1) + 1)
        if (const auto pid = leading_number(std::string_view(text).substr(at)); pid > 1)
          pids.insert(static_cast<int>(pid));
    }
  }
  return {pids.begin(), pids.end()};
}

std::int64_t Cgroups::oom_kills(const std::string& id) const {
  const auto file = unified_ ? "/memory.events" : "/memory.oom_control";
  return parse_oom_kills(read_small_file(controller_folder("memory", id) + file).value_or(""));
}

std::int64_t Cgroups::memory_peak_bytes(const std::string& id) const {
  return number_in(controller_folder("memory", id) +
                   (unified_ ? "/memory.peak" : "/memory.max_usage_in_bytes"));
}

std::optional<std::int64_t> Cgroups::cpu_time_ns(const std::string& id) const {
  if (unified_) {
    auto text = read_small_file(controller_folder("cpu", id) + "/cpu.stat");
    if (!text.ok() || !text->starts_with("usage_usec ")) return std::nullopt;
    return leading_number(std::string_view(*text).substr(11)) * 1000;
  }
  auto text = read_small_file(controller_folder("cpuacct", id) + "/cpuacct.usage", 64);
  if (!text.ok()) return std::nullopt;
  return leading_number(*text);
}

void Cgroups::kill_all(const std::string& id) const {
  if (unified_) {
    write_value(controller_folder("", id) + "/cgroup.freeze", "0");
    write_value(controller_folder("", id) + "/cgroup.kill", "1");
  } else {
    write_value(controller_folder("freezer", id) + "/freezer.state", "THAWED");
  }
  for (const int pid : processes(id)) ::kill(pid, SIGKILL);
}

Status Cgroups::remove(const std::string& id) const {
  const auto end = std::chrono::steady_clock::now() + kRemoveDeadline;
  for (auto pause = std::chrono::milliseconds{1};;
       pause = std::min(pause * 2, std::chrono::milliseconds{100})) {
    for (const auto& folder : folders(id))
      for (const auto& group : tree_of(folder)) ::rmdir(group.c_str());
    if (folders(id).empty()) return {};
    if (std::chrono::steady_clock::now() > end) break;
    kill_all(id);
    // No event tells that a killed process has left its group on version 1: look again soon.
    std::this_thread::sleep_for(pause);
  }
  return Error(
      ErrorKind::kUnavailable, "cgroup_stays",
      fmt::format("processes of instance {} do not end: {}", id, fmt::join(processes(id), ", ")),
      "they hang in the kernel, most likely in the driver of a card");
}

}  // namespace autodl::runtime
