// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Init: PID 1 of an instance. Owns everything inside it that is the platform's: the one listener,
// the control conversation with the node, the command, logins, the stop, the exit record.
//
//   listening ──setup──▶ preparing ──sshd's banner──▶ ready ──go──▶ running ──command ended──▶
//   ended
//                            └─ failed: error frame; a new setup tries again      stop ─▶ stopping
//                            ─▶
// All state outlives a broken control connection (the node dials again and repeats setup and go)
// and a checkpoint. The command is started once per life of this process, which is one run.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "init/api_server.hpp"
#include "init/event_loop.hpp"
#include "init/frame_conn.hpp"
#include "init/process.hpp"
#include "init/ssh_entry.hpp"
#include "init/stream.hpp"
#include "wire/init_messages.hpp"
#include "wire/proxy_v2.hpp"

namespace autodl::init {

struct InitPaths {
  std::string run_dir = "/run/autodl";
  std::string boot_dir = "/run/autodl/boot";  // key in, exit.json out
  std::uint16_t port = kInitPort;
};

class Init {
 public:
  explicit Init(InitPaths paths);
  ~Init();

  // Reads and removes the key, makes what an image may lack, listens.
  Status begin();
  // Until the instance's end; the process's exit code (of the command; 128 + N for signal N).
  int run();

 private:
  enum class StopStage { kInt, kTerm, kHangUp, kKill, kEnd };
  struct Incoming;  // a connection whose header is not complete yet

  // ---- ways in (init_streams.cpp)
  Status listen();
  void accept_some();
  void on_header_bytes(int fd);
  void close_incoming(int fd);
  void admit(UniqueFd socket, const ProxyHeader& header);
  void add_stream(std::unique_ptr<Stream> stream);
  static void refuse(UniqueFd socket, StreamKind kind, std::string code, std::string message);

  // ---- the node's conversation
  void take_control(UniqueFd socket);
  void drop_control();
  void on_control_frame(const Frame& frame);
  void send(InitFrame type, std::string_view payload);
  void send_error(const Error& error);
  bool is_this_run(const RunId& run);
  void on_setup(const std::string& payload);
  void apply_setup(const InitSetup& setup);
  void run_ldconfig();
  void run_self_test();
  void on_go();
  void on_keys(const std::string& payload);
  void on_samples(const std::string& payload);

  // ---- the command and its end (init_end.cpp)
  void start_command();
  void command_ended(ExitStatus status);
  void begin_stop(Millis grace);
  void signal_all(int signal);
  bool others_left() const;
  void enter_stop_stage(StopStage stage);
  void wait_for_others(Millis left, StopStage next);
  ExitStatus stopped_status() const;
  void finish(ExitStatus status);

  HttpReply on_api(const std::string& method, const std::string& path, bool root);
  void on_shutdown();

  InitPaths paths_;
  EventLoop loop_;
  Children children_;
  std::string key_;
  NonceCache nonces_;
  UniqueFd listener_;
  UniqueFd signals_;
  std::map<int, std::unique_ptr<Incoming>> incoming_;
  std::unique_ptr<FrameConn> control_;
  SshEntry ssh_;
  ApiServer api_;
  StreamHost host_;
  std::map<Stream*, std::unique_ptr<Stream>> streams_;
  std::size_t ssh_count_ = 0;

  std::optional<InitSetup> setup_;
  bool preparing_ = false;
  std::optional<InitReady> ready_;
  bool going_ = false;
  pid_t command_ = 0;
  std::string samples_;
  bool shutdown_asked_ = false;
  bool stopping_ = false;
  StopStage stop_stage_ = StopStage::kInt;
  Millis stop_grace_{};
  EventLoop::TimerId stop_timer_ = 0;
  std::optional<ExitRecord> ended_;
  int exit_code_ = 0;
};

}  // namespace autodl::init
