// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// InitLinks: the node's control streams into its instances. Implemented by SocketInitLinks (TCP to
// port 65022 of the instance) and FakeInitLinks (testing/). Calls block; different instances in
// parallel, one instance at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "wire/init_messages.hpp"

namespace autodl {

// What init says by itself, after the control stream is set up.
struct InitEvent {
  enum class Kind {
    kEnded,     // the command ended; init follows
    kShutdown,  // shutdown was typed inside
    kReport,    // a line for the instance's events
    kLost,      // the control stream broke: it is dialled again
  };
  Kind kind = Kind::kLost;
  InstanceId instance;
  RunId run;
  InitReport report;
};
using InitEventSink = std::function<void(InitEvent)>;  // called from any thread

struct InitTarget {
  InstanceId instance;
  RunId run;
  std::string address;  // "100.64.0.6"
  std::string key;      // the run's, 32 bytes
  InitSetup setup;
};

class InitLinks {
 public:
  virtual ~InitLinks() = default;
  // Dials (where there is no stream yet), sends setup and waits for ready. kUnavailable not_ready:
  // not within the limit; call again.
  virtual Result<InitReady> connect(const InitTarget& target, Millis limit) = 0;
  // The others: kUnavailable init_gone where there is no stream.
  virtual Status go(const InstanceId& instance, const RunId& run) = 0;
  virtual Status stop(const InstanceId& instance, const InitStop& stop) = 0;
  virtual Status keys(const InstanceId& instance, const std::vector<AccessKey>& keys) = 0;
  virtual Status samples(const InstanceId& instance, const std::string& json) = 0;
  virtual void close(const InstanceId& instance) = 0;  // no event follows
};

}  // namespace autodl
