// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The core's views as the API's types.
#pragma once

#include "control/views.hpp"
#include "wire/api_types.hpp"

namespace autodl {

api::Instance to_api(const InstanceView& view);
api::Run to_api(const RunView& view);
api::Event to_api(const Event& event);
api::Account to_api(const AccountView& view);
api::NewAccount to_api(const NewAccount& view);
api::Bill to_api(const Bill& bill);
api::AccountBill to_api(const AccountBill& bill);
api::GpuType to_api(const GpuTypeView& view);
api::Image to_api(const ImageView& view);
api::Node to_api(const NodeView& view);
api::Card to_api(const CardView& view);
api::GroupQuota to_api(const GroupView& view);
api::AuditEntry to_api(const AuditRow& row);
api::CardEvent to_api(const CardFact& fact);
api::ImageAlias to_api(const ImageAliasRow& row);
api::SshKey to_api(const SshKeyRow& row);

template <class T>
auto all_to_api(const std::vector<T>& items) {
  std::vector<decltype(to_api(items.front()))> out;
  out.reserve(items.size());
  for (const auto& item : items) out.push_back(to_api(item));
  return out;
}

}  // namespace autodl
