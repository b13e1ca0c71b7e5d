// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "control/api/open_gate.hpp"

namespace autodl {

OpenGate::Place::Place(OpenGate& gate, InstanceId instance)
    : gate_(gate), instance_(std::move(instance)) {
  ++gate_.counts_[instance_].waiting;
}

OpenGate::Place::~Place() {
  const auto found = gate_.counts_.find(instance_);
  if (opening_)
    --found->second.opening;
  else
    --found->second.waiting;
  if (found->second.opening == 0 && found->second.waiting == 0) gate_.counts_.erase(found);
  if (opening_ && gate_.left_) gate_.left_->notify();
}

Task<Status> OpenGate::Place::enter(Millis limit) {
  const Error busy(ErrorKind::kExhausted, "busy",
                   "too many connections into this instance are being opened",
                   "try again in a few seconds");
  if (!gate_.left_) gate_.left_.emplace(co_await boost::asio::this_coro::executor);
  auto& counts = gate_.counts_.at(instance_);  // stays while this place does
  if (counts.waiting > kWaitingMax) co_return busy;
  const auto end = std::chrono::steady_clock::now() + limit;
  while (counts.opening >= kOpeningMax) {
    const auto left = std::chrono::duration_cast<Millis>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) co_return busy;
    const auto seen = gate_.left_->version();
    co_await gate_.left_->wait(seen, left);
  }
  --counts.waiting;
  ++counts.opening;
  opening_ = true;
  co_return Status{};
}

}  // namespace autodl
