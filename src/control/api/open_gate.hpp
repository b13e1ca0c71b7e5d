// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// OpenGate: how many streams into each instance are being opened at once. One whose init does not
// answer (a tenant can see to that) holds a thread of the blocking pool until the node gives up; it
// must not hold them all. Lives on the loop's thread.
//
//   OpenGate::Place place(api->gate, instance);            // counts as waiting
//   const auto entered = co_await place.enter(limit);      // now opening, or kExhausted
#pragma once

#include <map>
#include <optional>

#include "async/notifier.hpp"
#include "async/task.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"

namespace autodl {

class OpenGate {
 public:
  static constexpr std::size_t kOpeningMax = 2;
  static constexpr std::size_t kWaitingMax = 64;

  class Place {
   public:
    Place(OpenGate& gate, InstanceId instance);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    // Waits for the instance's turn; kExhausted "busy" where too many wait or it takes too long.
    Task<Status> enter(Millis limit);

   private:
    OpenGate& gate_;
    const InstanceId instance_;
    bool opening_ = false;
  };

 private:
  struct Counts {
    std::size_t opening = 0;
    std::size_t waiting = 0;
  };
  std::map<InstanceId, Counts> counts_;
  std::optional<Notifier> left_;  // made with the first task's executor
};

}  // namespace autodl
