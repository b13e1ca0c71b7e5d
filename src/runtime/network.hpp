// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Network: one routed veth per instance, and one nft table for the installation.
//
//   host: PREFIX-SLOT, POOL.1/32, route POOL.(2+slot)/32 ──veth── eth0 POOL.(2+slot)/32 :instance
//
// The table's rules name interfaces by prefix, so they are the same for any number of instances:
// nothing is added per instance, and nothing is left behind by one. Internet is allowed; the host,
// private and directly connected networks, link-local and other instances are not, nor IPv6; the
// resolvers' port 53 and the configured addresses are exempt; a source address must be the veth's
// own; what goes to an instance leaves by its own veth or not at all, also while that is absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "runtime/config.hpp"

namespace autodl::runtime {

struct AddressPool {
  std::uint32_t network = 0;  // host byte order
  int bits = 0;
  std::string text() const;  // "100.64.0.0/16"
};
Result<AddressPool> parse_pool(std::string_view text);
std::optional<std::uint32_t> parse_ipv4(std::string_view text);
std::string to_ipv4(std::uint32_t address);

// Of /proc/net/route: networks reached without a gateway, and the default route's interface.
struct HostRoutes {
  std::vector<std::string> connected;  // "192.0.2.0/24"
  std::string default_interface;       // empty: none
};
HostRoutes parse_routes(std::string_view proc_net_route);
// IPv4 nameservers of resolv.conf.
std::vector<std::string> parse_resolvers(std::string_view resolv_conf);

struct TableSpec {
  std::string prefix;
  AddressPool pool;
  std::vector<std::string> resolvers;
  std::vector<std::string> allowed;
  std::vector<std::string> connected;
  bool masquerade = false;
};
// An nft script that puts the table in place, whatever was there before, in one transaction.
std::string table_script(const TableSpec& spec);

// `ip -batch` scripts for the two ends.
std::string host_link_script(const std::string& veth, int pid, std::uint32_t host,
                             std::uint32_t instance);
std::string instance_link_script(std::uint32_t host, std::uint32_t instance);

class Network {
 public:
  explicit Network(const RuntimeConfig& config) : config_(config) {}

  Status prepare();  // pool parsed, table in place, forwarding on
  std::string address_of(std::uint32_t slot) const;
  Status check_slot(std::uint32_t slot) const;  // the pool holds an address for it
  Status attach(std::uint32_t slot, int pid);   // to the process's network namespace
  Status detach(std::uint32_t slot);            // veth gone; absent is fine
  bool attached(std::uint32_t slot) const;
  const std::vector<std::string>& resolvers() const { return resolvers_; }

 private:
  std::string veth(std::uint32_t slot) const;
  Status allow_forwarding(const std::string& interface) const;

  const RuntimeConfig& config_;
  AddressPool pool_;
  std::vector<std::string> resolvers_;
  std::string uplink_;  // interface of the default route; empty: none
};

}  // namespace autodl::runtime
