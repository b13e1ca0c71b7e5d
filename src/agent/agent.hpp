// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Agent: AgentCore with threads around it. One loop thread owns the core; steps run on a few
// workers (those of one instance never overlap); a meter thread looks at the cards once a second;
// an exit thread waits for pidfds; NodeLink and StreamServer have threads of their own.
//
// stop() ends the threads and touches no container: what runs goes on and is adopted next time.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "agent/action_runner.hpp"
#include "agent/agent_core.hpp"
#include "agent/card_load.hpp"
#include "agent/exit_watch.hpp"
#include "agent/socket_init_links.hpp"
#include "link/node_link.hpp"
#include "link/stream_server.hpp"

namespace autodl {

// Starts a file worker in these namespaces; the channel to it. The worker ends when it closes.
using FileWorkerStarter = std::function<Result<UniqueFd>(ContainerRuntime::Namespaces)>;

struct AgentOptions {
  AgentConfig core;
  std::string state_dir;  // "<node state>": instances/ID/{journal,host_key,run.json,…} below it
  std::string link_path;
  std::string streams_path;
  SocketRights rights;        // of both sockets
  std::optional<uid_t> user;  // who may connect, besides root
  std::size_t workers = 8;
};

struct AgentParts {
  ContainerRuntime& runtime;
  GpuInventory& inventory;
  CardProvider& cards;
  const Clock& clock;
  Random& random;
  FileWorkerStarter start_file_worker;
};

class Agent {
 public:
  Agent(AgentOptions options, AgentParts parts);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // prepare() and scan() of the runtime, the journal, adoption; then all threads.
  Status start();
  void stop();

 private:
  using Input = std::function<void(AgentCore&)>;

  void post(Input input);
  void loop();
  void work();
  void meter();
  void meter_once(std::int64_t round);
  void report_loads(const std::vector<RunningRun>& runs);
  void give_out(std::vector<Action> actions);
  void tell_control();
  void refresh_images();
  std::shared_ptr<std::mutex> lock_of(const InstanceId& instance);

  // Streams, from the server's threads.
  Result<UniqueFd> open_stream(const StreamRequest& request);
  Result<UniqueFd> open_inside(const StreamRequest& request);
  Result<UniqueFd> open_files(const StreamRequest& request);
  Result<UniqueFd> open_log(const StreamRequest& request);

  const AgentOptions options_;
  const AgentParts parts_;
  FileJournal journal_;
  DiskInstanceFiles files_;
  AgentCore core_;
  SocketInitLinks links_;
  ActionRunner runner_;
  ExitWatch exits_;
  NodeLink link_;
  StreamServer streams_;

  std::uint64_t told_version_ = 0;  // the loop's
  SteadyTime told_at_{};
  CpuLoad cpu_load_;  // the meter's

  std::mutex mutex_;  // guards what follows
  std::condition_variable input_came_, job_came_, stop_came_;
  bool stopping_ = false;
  std::deque<Input> inputs_;
  std::deque<Action> jobs_;
  std::vector<RunningRun> running_;                // as of the last round of the loop
  std::map<InstanceId, std::uint32_t> with_disk_;  // slot
  std::map<InstanceId, std::shared_ptr<std::mutex>> locks_;
  std::vector<std::thread> threads_;
};

}  // namespace autodl
