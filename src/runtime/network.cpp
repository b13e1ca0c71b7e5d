// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/network.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <net/if.h>

#include <bit>
#include <charconv>

#include "base/crash_point.hpp"
#include "base/log.hpp"
#include "base/unique_fd.hpp"
#include "runtime/host_files.hpp"
#include "runtime/process.hpp"

namespace autodl::runtime {
namespace {

// Never reached from an instance: this host and its networks, private and shared ones, link-local
// (metadata services), documentation and benchmarks, multicast, reserved.
constexpr const char* kRefused[] = {
    "0.0.0.0/8",     "10.0.0.0/8",     "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
    "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4"};

template <class Number>
bool parse_number(std::string_view text, Number& out, int base = 10) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), out, base);
  return !text.empty() && result.ec == std::errc{} && result.ptr == text.data() + text.size();
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(" \t\r"); at < line.size();
       at = line.find_first_not_of(" \t\r", at)) {
    const auto end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

template <class Action>
void each_line(std::string_view text, Action action) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    action(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

std::string nft_set(const char* name, const std::vector<std::string>& elements) {
  const auto list = elements.empty()
                        ? std::string{}
                        : fmt::format(" elements = {{ {} }};", fmt::join(elements, ", "));
  return fmt::format("  set {} {{ type ipv4_addr; flags interval; auto-merge;{} }}\n", name, list);
}

Status write_setting(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid() || ::write(fd.get(), "1", 1) != 1)
    return errno_error(fmt::format("write '{}'", path), errno);
  return {};
}

bool is_prefix(std::string_view text) {
  return !text.empty() && text.size() <= 8 && text.front() >= 'a' && text.front() <= 'z' &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") == std::string_view::npos;
}

}  // namespace

std::optional<std::uint32_t> parse_ipv4(std::string_view text) {
  std::uint32_t address = 0;
  for (int part = 0; part < 4; ++part) {
    const auto end = part == 3 ? text.size() : text.find('.');
    unsigned number = 0;
    if (end == std::string_view::npos || end > 3 || !parse_number(text.substr(0, end), number) ||
        number > 255)
      return std::nullopt;
    address = address << 8 | number;
    text.remove_prefix(part == 3 ? end : end + 1);
  }
  return address;
}

std::string to_ipv4(std::uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255, address >> 8 & 255,
                     address & 255);
}

std::string AddressPool::text() const {
  return fmt::format("{}/{}", to_ipv4(network), bits);
}

Result<AddressPool> parse_pool(std::string_view text) {
  const auto slash = text.find('/');
  const auto address = parse_ipv4(text.substr(0, slash));
  int bits = 0;
  if (slash == std::string_view::npos || !address || !parse_number(text.substr(slash + 1), bits) ||
      bits < 8 || bits > 29 || (*address & (0xffffffffU >> bits)) != 0) {
    return Error(ErrorKind::kInvalid, "bad_address_pool",
                 fmt::format("address pool '{}' is not an IPv4 network of 8 to 29 bits", text),
                 "write it as 100.64.0.0/16");
  }
  return AddressPool{*address, bits};
}

HostRoutes parse_routes(std::string_view proc_net_route) {
  HostRoutes routes;
  each_line(proc_net_route, [&](std::string_view line) {
    const auto words = words_of(line);
    std::uint32_t network = 0, gateway = 0, mask = 0;
    if (words.size() < 8 || !parse_number(words[1], network, 16) ||
        !parse_number(words[2], gateway, 16) || !parse_number(words[7], mask, 16))
      return;
    const auto bits = std::popcount(mask);
    if (bits == 0 && routes.default_interface.empty())
      routes.default_interface = std::string(words[0]);
    if (bits > 0 && gateway == 0)
      routes.connected.push_back(fmt::format("{}/{}", to_ipv4(__builtin_bswap32(network)), bits));
  });
  return routes;
}

std::vector<std::string> parse_resolvers(std::string_view resolv_conf) {
  std::vector<std::string> resolvers;
  each_line(resolv_conf, [&](std::string_view line) {
    const auto words = words_of(line);
    if (words.size() < 2 || words[0] != "nameserver") return;
    const auto address = parse_ipv4(words[1]);
    // One on the host's loopback can't be reached from an instance.
    if (address && *address >> 24 != 127) resolvers.emplace_back(words[1]);
  });
  return resolvers;
}

std::string table_script(const TableSpec& spec) {
  std::vector<std::string> refused(std::begin(kRefused), std::end(kRefused));
  refused.insert(refused.end(), spec.connected.begin(), spec.connected.end());
  const auto table = "autodl_" + spec.prefix;
  const auto ours = fmt::format("\"{}-*\"", spec.prefix);
  const auto pool = spec.pool.text();
  // "add" before "delete" makes the delete succeed where there was no table.
  std::string script =
      fmt::format("add table inet {0}\ndelete table inet {0}\ntable inet {0} {{\n", table);
  script += nft_set("resolvers", spec.resolvers);
  script += nft_set("allowed", spec.allowed);
  script += nft_set("refused", refused);
  script += fmt::format(R"(  chain from_instance {{
    meta nfproto ipv6 drop
    fib saddr . iif oif missing drop comment "a source address of somebody else"
  }}
  chain to_host {{
    type filter hook input priority -10; policy accept;
    iifname != {0} accept
    jump from_instance
    ct state established,related accept
    ip daddr @resolvers meta l4proto {{ tcp, udp }} th dport 53 accept
    drop
  }}
  chain through_host {{
    type filter hook forward priority -10; policy accept;
    iifname != {0} oifname != {0} ip daddr != {1} accept
    iifname {0} oifname {0} drop
    ip daddr {1} oifname != {0} drop
    oifname {0} ct state established,related accept
    oifname {0} drop
    jump from_instance
    ip daddr @resolvers meta l4proto {{ tcp, udp }} th dport 53 accept
    ip daddr @allowed accept
    ip daddr @refused drop
  }}
  chain out_of_host {{
    type filter hook output priority -10; policy accept;
    oifname "lo" accept
    ip daddr {1} oifname != {0} drop
  }}
)",
                        ours, pool);
  if (spec.masquerade) {
    script += fmt::format(R"(  chain addresses {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr {1} oifname != {0} masquerade
  }}
)",
                          ours, pool);
  }
  return script + "}\n";
}

std::string host_link_script(const std::string& veth, int pid, std::uint32_t host,
                             std::uint32_t instance) {
  return fmt::format(
      "link add {0} type veth peer name eth0 address 02:00:{1:02x}:{2:02x}:{3:02x}:{4:02x} netns "
      "{5}\n"
      "addr add {6}/32 dev {0}\n"
      "link set {0} up\n"
      "route replace {7}/32 dev {0} src {6}\n",
      veth, instance >> 24, instance >> 16 & 255, instance >> 8 & 255, instance & 255, pid,
      to_ipv4(host), to_ipv4(instance));
}

std::string instance_link_script(std::uint32_t host, std::uint32_t instance) {
  return fmt::format(
      "link set lo up\n"
      "addr add {1}/32 dev eth0\n"
      "link set eth0 up\n"
      "route add {0}/32 dev eth0\n"
      "route add default via {0} src {1}\n",
      to_ipv4(host), to_ipv4(instance));
}

Status Network::prepare() {
  if (!is_prefix(config_.name_prefix)) {
    return Error(ErrorKind::kInvalid, "bad_name_prefix",
                 fmt::format("name prefix '{}' is not 1 to 8 of a-z and 0-9", config_.name_prefix));
  }
  ADL_TRY(pool, parse_pool(config_.address_pool));
  pool_ = pool;
  resolvers_ = config_.resolvers.empty()
                   ? parse_resolvers(read_small_file("/etc/resolv.conf").value_or(""))
                   : config_.resolvers;
  for (const auto& address : resolvers_)
    if (!parse_ipv4(address)) {
      return Error(ErrorKind::kInvalid, "bad_resolver",
                   fmt::format("resolver '{}' is not an IPv4 address", address));
    }
  for (const auto& address : config_.allowed)
    if (!parse_ipv4(std::string_view(address).substr(0, address.find('/')))) {
      return Error(ErrorKind::kInvalid, "bad_allowed_address",
                   fmt::format("allowed address '{}' is not an IPv4 address or network", address));
    }
  const auto routes = parse_routes(read_small_file("/proc/net/route").value_or(""));
  uplink_ = routes.default_interface;
  ProcessOptions options;
  TableSpec spec{config_.name_prefix, pool_, resolvers_, config_.allowed, {}, !uplink_.empty()};
  // Routes to instances are connected ones too: their pool is refused anyway.
  for (const auto& network : routes.connected)
    if (!network.ends_with("/32")) spec.connected.push_back(network);
  options.input = table_script(spec);
  crash_point("runtime.nft.before");
  ADL_TRY_STATUS([&]() -> Status {
    auto done = run_checked({"nft", "-f", "-"}, options);
    return done.ok() ? Status{} : Status{done.error().context("set the firewall table")};
  }());
  crash_point("runtime.nft.after");
  if (!uplink_.empty()) return allow_forwarding(uplink_);
  log_warn("runtime", "no default route: instances have no way to the internet");
  return {};
}

// Per interface, not for the whole host: other interfaces' packets are not ours to forward.
Status Network::allow_forwarding(const std::string& interface) const {
  return write_setting(fmt::format("/proc/sys/net/ipv4/conf/{}/forwarding", interface));
}

std::string Network::veth(std::uint32_t slot) const {
  return fmt::format("{}-{}", config_.name_prefix, slot);
}

std::string Network::address_of(std::uint32_t slot) const {
  return to_ipv4(pool_.network + 2 + slot);
}

Status Network::check_slot(std::uint32_t slot) const {
  const auto addresses = std::uint64_t{1} << (32 - pool_.bits);
  const auto last_uid = std::uint64_t{config_.uid_base} + (std::uint64_t{slot} + 1) * 65536;
  if (slot + std::uint64_t{3} < addresses && last_uid <= 0xffff0000ULL) return {};
  return Error(
      ErrorKind::kExhausted, "no_slot",
      fmt::format("slot {} is beyond address pool {} or the id ranges", slot, pool_.text()));
}

bool Network::attached(std::uint32_t slot) const {
  return ::if_nametoindex(veth(slot).c_str()) != 0;
}

Status Network::attach(std::uint32_t slot, int pid) {
  ADL_TRY_STATUS(check_slot(slot));
  ADL_TRY_STATUS(detach(slot));
  const auto name = veth(slot);
  const auto instance = pool_.network + 2 + slot;
  const auto host = pool_.network + 1;
  UniqueFd space(::open(fmt::format("/proc/{}/ns/net", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!space.valid()) return errno_error("open the instance's network namespace", errno);
  ProcessOptions options;
  options.input = host_link_script(name, pid, host, instance);
  crash_point("runtime.veth.before");
  ADL_TRY(outside, run_checked({"ip", "-batch", "-"}, options));
  crash_point("runtime.veth.after");
  // The host has no business with it by IPv6; where the kernel has none there is no such file.
  static_cast<void>(write_setting(fmt::format("/proc/sys/net/ipv6/conf/{}/disable_ipv6", name)));
  options.input = instance_link_script(host, instance);
  options.network_namespace_fd = space.get();
  ADL_TRY(inside, run_checked({"ip", "-batch", "-"}, options));
  return uplink_.empty() ? Status{} : allow_forwarding(name);
}

Status Network::detach(std::uint32_t slot) {
  if (!attached(slot)) return {};
  crash_point("runtime.veth_delete.before");
  ADL_TRY(result, run_process({"ip", "link", "delete", veth(slot)}));
  crash_point("runtime.veth_delete.after");
  // It may have gone by itself meanwhile, with its other end's namespace.
  if (!attached(slot)) return {};
  return Error(ErrorKind::kUnavailable, "veth_stays",
               fmt::format("delete network interface '{}': {}", veth(slot), result.err));
}

}  // namespace autodl::runtime
