// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// FileChannels: connections to instances' file workers, kept for a while between requests, since
// each new one costs the node a process. Bounded per instance and in all. One executor.
#pragma once

#include <chrono>
#include <list>
#include <map>
#include <memory>

#include "async/blocking_pool.hpp"
#include "base/ids.hpp"
#include "control/api/file_client.hpp"
#include "control/api/streams.hpp"

namespace autodl {

class FileChannels {
 public:
  FileChannels(StreamOpener& streams, BlockingPool& pool);
  ~FileChannels();

  // One that works, for one request after another; kExhausted "busy" where too many are out.
  Task<Result<std::unique_ptr<FileClient>>> acquire(InstanceId instance);
  // Ends the loan. client empty: it broke.
  void give_back(const InstanceId& instance, std::unique_ptr<FileClient> client);
  void stop();

 private:
  struct State;
  StreamOpener& streams_;
  BlockingPool& pool_;
  std::shared_ptr<State> state_;
};

// A loan: gives the client back at its end, unless it was marked broken.
class FileLoan {
 public:
  FileLoan(FileChannels& channels, InstanceId instance, std::unique_ptr<FileClient> client)
      : channels_(channels), instance_(std::move(instance)), client_(std::move(client)) {}
  ~FileLoan() { channels_.give_back(instance_, std::move(client_)); }
  FileLoan(const FileLoan&) = delete;
  FileLoan& operator=(const FileLoan&) = delete;

  FileClient& operator*() { return *client_; }
  FileClient* operator->() { return client_.get(); }
  void broken() { client_.reset(); }
  // After an error: a worker's own refusal leaves the channel usable, a lost one does not.
  void look_at(const Error& error) {
    if (error.kind() == ErrorKind::kUnavailable || error.kind() == ErrorKind::kInternal) broken();
  }

 private:
  FileChannels& channels_;
  InstanceId instance_;
  std::unique_ptr<FileClient> client_;
};

}  // namespace autodl
