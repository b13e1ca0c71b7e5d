// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The OCI configuration of an instance's container, as a pure function of what the node decided.
// Nothing of the image or the user is in it: init applies their environment and command later.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>

#include "base/result.hpp"

namespace autodl::runtime {

struct BundleMount {
  std::string source;
  std::string target;
  bool read_only = true;
  bool no_exec = false;  // the source's file system is noexec: a user namespace can't take that off
  bool is_device = false;
  bool operator==(const BundleMount&) const = default;
};

struct BundleDevice {  // allowed in the device cgroup
  char type = 'c';
  std::int64_t major = 0;
  std::int64_t minor = 0;
};

struct BundleSpec {
  std::string instance;
  std::string run;
  std::string root_path;
  std::string hostname;
  std::vector<std::string> init_argv;
  std::uint32_t first_uid = 0;
  std::vector<BundleMount> mounts;  // after the standard ones, in this order
  std::vector<BundleDevice> devices;
  std::string cgroup_path;
  std::string cpuset;             // empty: all
  std::int64_t memory_bytes = 0;  // 0: no limit
  std::int64_t pids_max = 0;
  bool swap_limit = false;  // the kernel counts swap: no more than memory
  bool cgroup_v2 = false;
  std::uint64_t open_files_max = 0;  // soft and hard
  boost::json::value seccomp;        // the linux.seccomp section
};

boost::json::object make_bundle(const BundleSpec& spec);

// An OCI seccomp section from its file's text. Error: it allows what no instance may have
// (bpf, userfaultfd, perf_event_open, io_uring, keyctl, …) or denies nothing by default.
Result<boost::json::value> parse_seccomp(std::string_view text);

// Hosts, hostname and resolv.conf of an instance.
std::string hosts_file(std::string_view hostname, std::string_view address);
std::string resolv_file(const std::vector<std::string>& resolvers);
// 1…63 of letters, digits and hyphens, no hyphen first or last.
bool is_hostname(std::string_view text);
// "0-3,8": digits, commas, hyphens.
bool is_cpuset(std::string_view text);

}  // namespace autodl::runtime
