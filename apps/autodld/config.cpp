// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "config.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <charconv>
#include <fstream>
#include <set>
#include <sstream>

namespace autodl {

namespace {

Error bad(const std::string& path, std::string_view what, std::string_view remedy = "") {
  return Error(ErrorKind::kInvalid, "bad_config", fmt::format("{}: {}", path, what),
               std::string(remedy));
}

// One table of the file: takes keys out one by one; what is left over is unknown.
class Section {
 public:
  Section(const toml::table& file, std::string name, const std::string& path)
      : name_(std::move(name)), path_(path) {
    if (const auto* table = file[name_].as_table()) {
      table_ = table;
      for (const auto& [key, value] : *table) unknown_.emplace(key.str());
    }
  }

  template <class Value>
  Status take(const char* key, Value& into) {
    unknown_.erase(key);
    if (table_ == nullptr || !table_->contains(key)) return {};
    const auto value = (*table_)[key].template value<Value>();
    if (!value.has_value())
      return bad(path_, fmt::format("[{}] {} has the wrong type", name_, key),
                 "see docs/dev/contracts.md, section 1");
    into = *value;
    return {};
  }

  Status take_list(const char* key, std::vector<std::string>& into) {
    unknown_.erase(key);
    if (table_ == nullptr || !table_->contains(key)) return {};
    const auto* list = (*table_)[key].as_array();
    if (list == nullptr) return bad(path_, fmt::format("[{}] {} is no list", name_, key));
    into.clear();
    for (const auto& item : *list) {
      const auto text = item.value<std::string>();
      if (!text)
        return bad(path_, fmt::format("[{}] {} holds something else than text", name_, key));
      into.push_back(*text);
    }
    return {};
  }

  Status finish() const {
    if (unknown_.empty()) return {};
    return bad(path_, fmt::format("[{}] knows no key '{}'", name_, *unknown_.begin()),
               "is it misspelt? docs/dev/contracts.md, section 1, lists all keys");
  }

 private:
  const toml::table* table_ = nullptr;
  std::string name_;
  const std::string& path_;
  std::set<std::string> unknown_;
};

Status read_server(const toml::table& file, const std::string& path, DaemonConfig& config) {
  Section server(file, "server", path);
  ADL_TRY_STATUS(server.take("listen", config.listen));
  ADL_TRY_STATUS(server.take("public_host", config.public_host));
  ADL_TRY_STATUS(server.take("state_dir", config.state_dir));
  ADL_TRY_STATUS(server.take("run_dir", config.run_dir));
  ADL_TRY_STATUS(server.take("user", config.user));
  return server.finish();
}

Status read_node(const toml::table& file, const std::string& path, DaemonConfig& config) {
  Section node(file, "node", path);
  ADL_TRY_STATUS(node.take("toolbox", config.toolbox));
  ADL_TRY_STATUS(node.take("image_store", config.image_store));
  ADL_TRY_STATUS(node.take("catalogue", config.catalogue));
  ADL_TRY_STATUS(node.take("name_prefix", config.name_prefix));
  ADL_TRY_STATUS(node.take("address_pool", config.address_pool));
  ADL_TRY_STATUS(node.take("uid_base", config.uid_base));
  ADL_TRY_STATUS(node.take("endpoint_host", config.endpoint_host));
  std::int64_t first = config.port_first;
  std::int64_t last = config.port_last;
  ADL_TRY_STATUS(node.take("port_first", first));
  ADL_TRY_STATUS(node.take("port_last", last));
  if (first < 1024 || last > 32'767 || first > last)
    return bad(path, "[node] port_first and port_last are a range within 1024-32767");
  config.port_first = static_cast<int>(first);
  config.port_last = static_cast<int>(last);
  ADL_TRY_STATUS(node.take_list("resolvers", config.resolvers));
  ADL_TRY_STATUS(node.take_list("allowed", config.allowed));
  ADL_TRY_STATUS(node.take("disk_reserve_bytes", config.disk_reserve_bytes));
  ADL_TRY_STATUS(node.take("disk_overcommit", config.disk_overcommit));
  if (config.uid_base < 65'536 || config.uid_base > 4'000'000'000)
    return bad(path, "[node] uid_base is from 65536 to 4000000000");
  return node.finish();
}

Status read_money(const toml::table& file, const std::string& path, DaemonConfig& config) {
  Section money(file, "money", path);
  ADL_TRY_STATUS(money.take("currency", config.currency));
  ADL_TRY_STATUS(money.take("storage_micro_per_gb_day", config.storage_micro_per_gb_day));
  ADL_TRY_STATUS(money.take("no_card_micro_per_hour", config.no_card_micro_per_hour));
  ADL_TRY_STATUS(money.take("contact_grace_s", config.contact_grace_s));
  ADL_TRY_STATUS(money.finish());
  if (config.currency != "CNY" && config.currency != "USD" && config.currency != "CREDIT")
    return bad(path,
               fmt::format("[money] currency '{}' is none of CNY, USD, CREDIT", config.currency));
  if (config.storage_micro_per_gb_day < 0 || config.no_card_micro_per_hour < 0 ||
      config.contact_grace_s < 3600)
    return bad(path, "[money] prices are at least 0 and contact_grace_s at least 3600");
  const auto* prices = file["prices"].as_table();
  if (prices == nullptr) return {};
  for (const auto& [card, price] : *prices) {
    const auto micro = price.value<std::int64_t>();
    if (!micro || *micro < 0 || *micro > 1'000'000'000'000)
      return bad(path, fmt::format("[prices] \"{}\" is a whole number of micro-units per card-hour",
                                   std::string(card.str())));
    config.prices.emplace(card.str(), *micro);
  }
  return {};
}

}  // namespace

Result<ListenAddress> parse_listen(const std::string& text) {
  const auto colon = text.rfind(':');
  ListenAddress address;
  if (colon != std::string::npos) {
    address.host = text.substr(0, colon);
    const char* first = text.data() + colon + 1;
    const auto parsed = std::from_chars(first, text.data() + text.size(), address.port);
    if (parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size() && address.port > 0 &&
        address.port < 65'536 && !address.host.empty())
      return address;
  }
  return Error(ErrorKind::kInvalid, "bad_config", fmt::format("'{}' is no address and port", text),
               "write it as 127.0.0.1:8480");
}

Result<DaemonConfig> parse_config(std::string_view text, const std::string& path) {
  toml::table file;
  try {
    file = toml::parse(text, path);
  } catch (const toml::parse_error& problem) {
    return bad(path, fmt::format("line {}: {}", problem.source().begin.line,
                                 std::string(problem.description())));
  }
  for (const auto& [key, value] : file) {
    const auto name = std::string(key.str());
    if (name != "server" && name != "node" && name != "money" && name != "prices")
      return bad(path, fmt::format("there is no section [{}]", name),
                 "the sections are [server], [node], [money] and [prices]");
  }
  DaemonConfig config;
  ADL_TRY_STATUS(read_server(file, path, config));
  ADL_TRY_STATUS(read_node(file, path, config));
  ADL_TRY_STATUS(read_money(file, path, config));
  ADL_TRY(listen, parse_listen(config.listen));
  if (listen.host != "127.0.0.1" && listen.host != "localhost")
    return bad(path,
               fmt::format("[server] listen: '{}' is not loopback, and this release has no TLS",
                           config.listen),
               "listen on 127.0.0.1 and put a TLS proxy or an SSH tunnel in front");
  if (config.endpoint_host.empty()) config.endpoint_host = "127.0.0.1";
  if (config.toolbox.empty()) config.toolbox = config.node_dir() + "/toolbox/current";
  if (config.image_store.empty()) config.image_store = config.node_dir() + "/images";
  return config;
}

Result<DaemonConfig> load_config(const std::string& path) {
  std::ifstream file(path);
  if (!file) return bad(path, "it cannot be read", "name the configuration with --config FILE");
  std::stringstream text;
  text << file.rdbuf();
  return parse_config(text.str(), path);
}

}  // namespace autodl
