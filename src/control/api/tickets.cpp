// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "control/api/tickets.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "wire/api_signature.hpp"

namespace autodl {
namespace {

constexpr std::size_t kInAllMax = 20'000;
constexpr std::ptrdiff_t kPerAccountMax = 1'000;
constexpr std::chrono::hours kForgottenAfter{24};

}  // namespace

void Tickets::forget_old() {
  const auto limit = clock_.steady_now() - kForgottenAfter;
  std::erase_if(tickets_, [&](const auto& entry) {
    return entry.second.touched < limit && !entry.second.busy;
  });
}

Result<std::string> Tickets::open(const AccountId& account, const InstanceId& instance,
                                  const api::TransferRequest& file) {
  const auto name = sha256_hex(fmt::format("{}\n{}\n{}\n{}\n{}", account.str(), instance.str(),
                                           file.path, file.size, file.sha256))
                        .substr(0, 32);
  const auto found = tickets_.find(name);
  if (found == tickets_.end()) {
    forget_old();
    const auto own = std::count_if(tickets_.begin(), tickets_.end(), [&](const auto& entry) {
      return entry.second.account == account;
    });
    if (tickets_.size() >= kInAllMax || own >= kPerAccountMax)
      return Error(ErrorKind::kExhausted, "too_many_transfers",
                   fmt::format("{} uploads are open", own), "complete or drop some first");
  }
  Ticket& ticket = tickets_[name];
  ticket.id = name;
  ticket.account = account;
  ticket.instance = instance;
  ticket.file = file;
  ticket.touched = clock_.steady_now();
  return name;
}

Result<std::string> Tickets::check(const AccountId& account, const InstanceId& instance,
                                   const std::string& id) const {
  const auto found = tickets_.find(id);
  if (found != tickets_.end() && found->second.account == account &&
      found->second.instance == instance)
    return id;
  return Error(ErrorKind::kNotFound, "no_such_ticket", "there is no such upload",
               "open it again with the same path, size and hash: it goes on where it was");
}

Ticket* Tickets::find(const std::string& id) {
  const auto found = tickets_.find(id);
  if (found == tickets_.end()) return nullptr;
  found->second.touched = clock_.steady_now();
  return &found->second;
}

}  // namespace autodl
