// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "gpu/cdi.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>

namespace autodl {
namespace {

namespace json = boost::json;

json::object device_node(const std::string& path) {
  return {{"path", path}};
}

json::object device(const std::string& name, json::array nodes) {
  return {{"name", name}, {"containerEdits", json::object{{"deviceNodes", std::move(nodes)}}}};
}

json::object mount(const CardMount& from) {
  return {{"hostPath", from.host_path},
          {"containerPath", from.container_path},
          {"options", json::array{"ro", "nosuid", "nodev", from.is_folder ? "rbind" : "bind"}}};
}

}  // namespace

std::string cdi_spec(const Inventory& inventory, const DriverFiles& files,
                     const std::string& folder) {
  json::array devices;
  json::array all;
  std::vector<CardId> ids;
  for (const auto& card : inventory.cards) {
    if (!card.minor || !card.problem.empty() || card.id.empty()) continue;
    const auto node = device_node(fmt::format("/dev/nvidia{}", *card.minor));
    devices.push_back(device(std::to_string(card.index), {node}));
    devices.push_back(device(card.id.str(), {node}));
    all.push_back(node);
    ids.push_back(card.id);
  }
  if (!all.empty()) devices.push_back(device("all", std::move(all)));
  json::array nodes;
  for (const auto& control : files.control) nodes.push_back(device_node(control.container_path));
  json::array mounts;
  if (const auto delivery = plan_delivery(inventory, ids, files, folder); delivery.ok())
    for (const auto& one : delivery->mounts) mounts.push_back(mount(one));
  const json::object spec{
      {"cdiVersion", "0.5.0"},
      {"kind", "nvidia.com/gpu"},
      {"devices", std::move(devices)},
      {"containerEdits",
       json::object{{"env", json::array{"NVIDIA_VISIBLE_DEVICES=void",
                                        fmt::format("LD_LIBRARY_PATH={}", kDriverFolderInside)}},
                    {"deviceNodes", std::move(nodes)},
                    {"mounts", std::move(mounts)}}}};
  return json::serialize(spec) + "\n";
}

}  // namespace autodl
