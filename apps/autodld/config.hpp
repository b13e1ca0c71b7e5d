// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The configuration of autodld, as docs/dev/contracts.md section 1 describes it. Every key has a
// default; an unknown key is refused by name, so that a misspelt one is not silently ignored.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace autodl {

struct DaemonConfig {
  // [server]
  std::string listen = "127.0.0.1:8480";
  std::string public_host = "127.0.0.1";
  std::string state_dir = "/var/lib/autodl";
  std::string run_dir = "/run/autodld";
  std::string user = "autodl";
  // [node]
  std::string toolbox;      // empty: <state_dir>/node/toolbox/current
  std::string image_store;  // empty: <state_dir>/node/images
  std::string catalogue;    // empty: no catalogue, only OCI references
  std::string name_prefix = "autodl";
  std::string address_pool = "100.64.0.0/16";
  std::int64_t uid_base = 200'000;
  int port_first = 20'000;
  int port_last = 20'999;
  std::string endpoint_host;  // address the SSH endpoints are bound to; empty: listen's
  std::vector<std::string> resolvers;
  std::vector<std::string> allowed;  // networks exempt from the isolation rules (a mirror, say)
  std::int64_t disk_reserve_bytes = std::int64_t{4} << 30;
  bool disk_overcommit = false;
  // [money]
  std::string currency = "CNY";
  std::int64_t storage_micro_per_gb_day = 0;
  std::int64_t no_card_micro_per_hour = 0;
  std::int64_t contact_grace_s = 86'400;
  // [prices]: card type → micro-units per card-hour
  std::map<std::string, std::int64_t> prices;

  // Not from the file.
  std::string simulate_gpus;  // "RTX 3090:2,RTX 4090:1"; empty: real cards

  std::string control_dir() const { return state_dir + "/control"; }
  std::string node_dir() const { return state_dir + "/node"; }
  std::string link_socket() const { return run_dir + "/link.sock"; }
  std::string streams_socket() const { return run_dir + "/streams.sock"; }
  std::string gateway_socket() const { return run_dir + "/control.sock"; }
};

// kInvalid "bad_config" with file, key or line, and what is expected.
Result<DaemonConfig> load_config(const std::string& path);
Result<DaemonConfig> parse_config(std::string_view text, const std::string& path);

// "127.0.0.1:8480" in its parts.
struct ListenAddress {
  std::string host;
  int port = 0;
};
Result<ListenAddress> parse_listen(const std::string& text);

}  // namespace autodl
