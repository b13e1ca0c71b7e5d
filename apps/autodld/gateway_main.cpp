// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "gateway/gateway.hpp"
#include "roles.hpp"

namespace autodl {

Status run_gateway(const DaemonConfig& config) {
  ADL_TRY(user, find_user(config.user));
  ADL_TRY_STATUS(drop_privileges(user));
  SystemClock clock;
  GatewayConfig settings;
  settings.control_socket = config.gateway_socket();
  settings.streams_socket = config.streams_socket();
  Gateway gateway(settings, clock);
  std::thread signals([&gateway] {
    wait_for_stop_signal();
    gateway.stop();
  });
  const auto ended = gateway.run();
  // run() returns by stop() or by a failure; the waiting thread is let go either way.
  ::kill(::getpid(), SIGTERM);
  signals.join();
  return ended;
}

}  // namespace autodl
