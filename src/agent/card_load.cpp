// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "agent/card_load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <fstream>

namespace autodl {

namespace json = boost::json;

int CpuLoad::percent(const InstanceId& instance, std::int64_t cpu_ns, SteadyTime now,
                     int processors) {
  const auto found = last_.find(instance);
  int percent = 0;
  if (found != last_.end() && now > found->second.at && cpu_ns >= found->second.cpu_ns) {
    const auto wall = (now - found->second.at).count() * std::max(processors, 1);
    percent = static_cast<int>(std::min<std::int64_t>(
        (cpu_ns - found->second.cpu_ns) * 100 / std::max<std::int64_t>(wall, 1), 100));
  }
  last_[instance] = {cpu_ns, now};
  return percent;
}

CgroupUse read_cgroup_use(int pid, const std::string& proc, const std::string& cgroup) {
  CgroupUse use;
  if (pid <= 0) return use;
  std::ifstream table(fmt::format("{}/{}/cgroup", proc, pid));
  std::string v1, v2, line;
  while (std::getline(table, line)) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto names = "," + line.substr(first + 1, second - first - 1) + ",";
    if (names.find(",memory,") != std::string::npos) v1 = line.substr(second + 1);
    if (names == ",,") v2 = line.substr(second + 1);
  }
  const auto folder = !v1.empty() ? fmt::format("{}/memory{}", cgroup, v1) : cgroup + v2;
  if ((v1.empty() && v2.empty()) || folder.find("/..") != std::string::npos) return use;
  std::ifstream procs(folder + "/cgroup.procs");
  for (std::int64_t one = 0; use.pids.size() < 64 && procs >> one;) use.pids.push_back(one);
  std::ifstream memory(folder + (v1.empty() ? "/memory.current" : "/memory.usage_in_bytes"));
  memory >> use.memory_bytes;
  return use;
}

std::string print_samples(const Inventory& inventory, const std::vector<CardId>& cards) {
  json::array gpus;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const auto found = std::find_if(inventory.cards.begin(), inventory.cards.end(),
                                    [&](const CardInfo& info) { return info.id == cards[i]; });
    json::object gpu{{"index", static_cast<std::int64_t>(i)}, {"uuid", cards[i].str()}};
    const auto put = [&](std::string_view key, std::optional<std::int64_t> value) {
      if (value)
        gpu[key] = *value;
      else
        gpu[key] = nullptr;
    };
    const bool known = found != inventory.cards.end();
    const auto mib = [](std::optional<std::int64_t> bytes) {
      return bytes ? std::optional(*bytes >> 20) : bytes;
    };
    gpu["model"] = known ? found->model : std::string();
    put("utilization_percent", known ? found->utilization_percent : std::nullopt);
    put("memory_used_mib", known ? mib(found->memory_used_bytes) : std::nullopt);
    put("memory_total_mib", known ? mib(found->memory_bytes) : std::nullopt);
    put("temperature_c", known ? found->temperature_c : std::nullopt);
    gpus.push_back(std::move(gpu));
  }
  return json::serialize(json::object{{"gpus", std::move(gpus)}});
}

}  // namespace autodl
