// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Notifier: "something has changed" for any number of waiting tasks. A waiter remembers the
// version it has seen, looks at the data, and waits for a later version; so no change is missed.
// Lives on one executor (one thread); notify_from_anywhere() may be called from every thread.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <list>
#include <memory>

#include "async/task.hpp"
#include "base/clock.hpp"

namespace autodl {

class Notifier {
 public:
  explicit Notifier(Executor executor);
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  std::uint64_t version() const;
  void notify();                // on the executor's thread
  void notify_from_anywhere();  // posts; harmless after the Notifier is gone

  // Until version() > seen (true) or the time is over (false).
  Task<bool> wait(std::uint64_t seen, Millis timeout);

 private:
  // Shared with posted notifications, which may outlive the Notifier.
  struct State {
    std::uint64_t version = 0;
    std::list<boost::asio::steady_timer*> waiters;
    void notify();
  };
  Executor executor_;
  std::shared_ptr<State> state_;
};

}  // namespace autodl
