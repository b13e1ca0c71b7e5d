// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Waits for SIGTERM or SIGINT: what every daemon's main awaits before it stops its parts.
#pragma once

#include <boost/asio/signal_set.hpp>

#include "async/task.hpp"

namespace autodl {

// The signal's number.
inline Task<int> wait_for_stop_signal() {
  const auto executor = co_await boost::asio::this_coro::executor;
  boost::asio::signal_set signals(executor, SIGTERM, SIGINT);
  const int number = co_await signals.async_wait(boost::asio::use_awaitable);
  co_return number;
}

}  // namespace autodl
