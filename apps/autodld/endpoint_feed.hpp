// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// EndpointFeed: tells gateways the endpoint table: whoever connects to the socket gets the latest
// line, and each newer one. A thread of its own; a gateway that does not read is dropped.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace autodl {

class EndpointFeed {
 public:
  // The socket is made anew, mode 0600: gateway and control are the same user.
  static Result<std::unique_ptr<EndpointFeed>> open(const std::string& path);
  ~EndpointFeed();
  EndpointFeed(const EndpointFeed&) = delete;
  EndpointFeed& operator=(const EndpointFeed&) = delete;

  // From any thread; the same line again is not sent.
  void publish(std::string line);

 private:
  struct Reader {
    UniqueFd fd;
    std::string pending;  // what is not sent yet
  };
  EndpointFeed(UniqueFd listener, UniqueFd wake);
  void run();
  void accept_readers();
  void take_latest();
  static bool drain(Reader& reader);

  UniqueFd listener_, wake_;
  std::vector<Reader> readers_;
  std::string sent_;  // the line the readers have, or are being sent
  std::mutex mutex_;  // guards what follows
  std::string latest_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace autodl
