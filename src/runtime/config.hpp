// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// RuntimeConfig: where a node's runtime keeps things and what it may use. All from the node's own
// configuration; nothing here ever comes over the link. Several installations run side by side on
// one machine when state_dir, run_dir, name_prefix, address_pool and uid_base differ.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace autodl::runtime {

struct RuntimeConfig {
  std::string state_dir;               // durable: disks, logs, image records (0700)
  std::string run_dir;                 // mounts and containers; must be searchable (0711 or 0755)
  std::string toolbox_dir;             // becomes /opt/autodl, read-only
  std::string name_prefix = "autodl";  // of veths, nft table and cgroup; 1…8 of [a-z0-9]
  std::uint32_t uid_base = 200000;     // slot n has the ids uid_base + n * 65,536 …
  std::string address_pool = "100.64.0.0/16";  // .1 is the node, slot n is .2 + n
  std::string image_root;                      // podman's storage; empty: state_dir/images
  std::string image_runroot;                   // empty: image_root + "-run"
  std::string seccomp_path;            // OCI section; empty: toolbox_dir/etc/seccomp.oci.json
  std::vector<std::string> resolvers;  // IPv4; empty: those of /etc/resolv.conf
  std::vector<std::string> allowed;    // IPv4 addresses or networks exempt from the refused ones
  std::vector<std::string> init_argv = {"/opt/autodl/sbin/autodl-init"};
  std::string cgroup_root = "/sys/fs/cgroup";

  std::int64_t host_reserve_bytes = std::int64_t{4} << 30;  // of state_dir's file system, kept free
  bool allow_overcommit = false;                            // promise more disk than there is
  std::int64_t log_disk_bytes = std::int64_t{144} << 20;    // hard size of one run's log disk
  std::int64_t log_head_bytes = std::int64_t{8} << 20;      // first bytes of a run that stay
  std::int64_t log_tail_bytes = std::int64_t{56} << 20;     // last bytes of a run that stay
  int log_runs_kept = 20;                                   // per instance
};

}  // namespace autodl::runtime
