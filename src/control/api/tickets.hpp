// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Tickets: uploads that are under way. A ticket's name follows from who uploads what to where, so
// a client that lost it (or a control that was started again) opens the same one and goes on where
// the part file ends: what was received is known by the instance's disk alone. In memory.
#pragma once

#include <map>
#include <string>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "wire/api_types.hpp"

namespace autodl {

struct Ticket {
  std::string id;
  AccountId account;
  InstanceId instance;
  api::TransferRequest file;
  bool busy = false;  // a part is being received: one at a time
  SteadyTime touched{};
};

class Tickets {
 public:
  explicit Tickets(const Clock& clock) : clock_(clock) {}

  // kExhausted "too_many_transfers".
  Result<std::string> open(const AccountId& account, const InstanceId& instance,
                           const api::TransferRequest& file);
  // Of this account and instance; kNotFound "no_such_ticket". Valid until close().
  Result<std::string> check(const AccountId& account, const InstanceId& instance,
                            const std::string& id) const;
  Ticket* find(const std::string& id);
  void close(const std::string& id) { tickets_.erase(id); }

 private:
  void forget_old();

  const Clock& clock_;
  std::map<std::string, Ticket> tickets_;
};

}  // namespace autodl
