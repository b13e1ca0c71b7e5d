// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What node (or gateway) and autodl-init say to each other in frames (wire/frames.hpp): the exec
// and pty streams, the control stream, and the record of the exit. Each message is parsed strictly
// (unknown fields, wrong types and over-long values are refused) and printed as JSON.
//
//   control:  node ── setup ──▶ init (writes env, keys, host key; self-tests sshd) ── ready ──▶
//             node ── go ──▶ init starts the command, opens logins … ◀── exit ── command ended
//             node ── stop ──▶ INT, TERM, KILL; init ends. Either may repeat after a redial.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace autodl {

enum class InitFrame : std::uint8_t {
  kStart = 1,        // → init: ExecStart, first frame of exec and pty
  kStdin = 2,        // → init: bytes
  kStdinClosed = 3,  // → init: empty
  kStdout = 4,       // ← init: bytes (a pty's output too)
  kStderr = 5,       // ← init: bytes
  kResize = 6,       // → init: WindowSize
  kSignal = 7,       // → init: {"name":"INT"}, to the process group
  kExit = 8,         // ← init: ExitStatus, last
  kError = 9,        // ← init: InitError, last; nothing was run
  kSetup = 32,       // → init: InitSetup
  kReady = 33,       // ← init: InitReady
  kGo = 34,          // → init: {"run"}
  kStop = 35,        // → init: InitStop
  kKeys = 36,        // → init: {"keys":[AccessKey…]}: replaces all account keys
  kEnded = 37,       // ← init: ExitRecord: the command ended
  kShutdown = 38,    // ← init: {"run"}: shutdown was typed inside
  kSamples = 39,     // → init: {"gpus":[…]}: what GET /v1/gpus answers, as it is (≤ 64 KiB)
  kReport = 40,      // ← init: InitReport, for the instance's events
  kPing = 41,        // either way: ≤ 64 bytes
  kPong = 42,        // the same bytes back
};

inline constexpr std::size_t kSamplesBytesMax = 64 << 10;
inline constexpr std::size_t kExitRecordBytesMax = 4096;
inline constexpr std::int64_t kGraceMsMax = 600'000;

// One program to run. Exactly one of argv and shell is set.
struct ExecStart {
  std::vector<std::string> argv;
  std::string shell;                       // a line for /bin/sh -c
  std::string cwd;                         // empty: the run's working folder
  std::map<std::string, std::string> env;  // over the instance's environment
  int cols = 80;                           // of a pty
  int rows = 24;
  std::string term = "xterm-256color";
  bool operator==(const ExecStart&) const = default;
};

struct WindowSize {
  int cols = 80;
  int rows = 24;
  bool operator==(const WindowSize&) const = default;
};

// How a process ended: exactly one is set.
struct ExitStatus {
  std::optional<int> exit_code;  // 0-255
  std::optional<int> signal;     // 1-64
  bool operator==(const ExitStatus&) const = default;
};

struct InitError {
  std::string code;  // command_not_found, bad_cwd, bad_message, not_ready, too_many_streams, …
  std::string message;
  bool operator==(const InitError&) const = default;
};

// One public key of the account. from: allow-list of addresses, CIDR ranges and patterns as
// authorized_keys(5) has them ("10.0.0.0/8", "192.168.1.*", "!10.0.0.5"); empty: from anywhere.
struct AccessKey {
  std::string public_key;  // one line: "ssh-ed25519 AAAA… comment"
  std::vector<std::string> from;
  bool operator==(const AccessKey&) const = default;
};

struct InitSetup {
  RunId run;
  InstanceId instance;
  std::string name;                        // for GET /v1/instance
  std::map<std::string, std::string> env;  // image's, then user's over it
  std::vector<AccessKey> keys;
  std::string host_key;                // private key, OpenSSH's PEM
  std::optional<std::string> command;  // none: a machine to SSH into; runs until stop
  std::string workdir = "/root";
  bool cards = false;  // cards are mounted: run the toolbox's ldconfig before ready
  bool operator==(const InitSetup&) const = default;
};

struct InitReady {
  RunId run;
  std::string ssh_banner;  // what the self-test read: "SSH-2.0-OpenSSH_10.0p2 …"
  bool operator==(const InitReady&) const = default;
};

struct InitStop {
  RunId run;
  std::int64_t grace_ms = 10'000;
  bool operator==(const InitStop&) const = default;
};

struct InitReport {
  std::string level;  // "info" | "warning"
  std::string message;
  bool operator==(const InitReport&) const = default;
};

// What init leaves in boot/exit.json, and the payload of kEnded. An instance without a command that
// was stopped leaves exit_code 0. The tenant can write this file too: hostile input.
struct ExitRecord {
  RunId run;
  ExitStatus exit;
  bool shutdown = false;  // shutdown was typed inside before it ended
  bool operator==(const ExitRecord&) const = default;
};

std::string to_json(const ExecStart& start);
std::string to_json(const WindowSize& size);
std::string to_json(const ExitStatus& status);
std::string to_json(const InitError& error);
std::string to_json(const InitSetup& setup);
std::string to_json(const InitReady& ready);
std::string to_json(const InitStop& stop);
std::string to_json(const InitReport& report);
std::string to_json(const ExitRecord& record);
std::string signal_to_json(int signal);                        // {"name":"INT"}
std::string run_to_json(const RunId& run);                     // {"run":"…"}: go, shutdown
std::string keys_to_json(const std::vector<AccessKey>& keys);  // {"keys":[…]}

// All errors: kInvalid, bad_message.
Result<ExecStart> parse_exec_start(std::string_view json);
Result<WindowSize> parse_window_size(std::string_view json);
Result<ExitStatus> parse_exit_status(std::string_view json);
Result<InitError> parse_init_error(std::string_view json);
Result<InitSetup> parse_init_setup(std::string_view json);
Result<InitReady> parse_init_ready(std::string_view json);
Result<InitStop> parse_init_stop(std::string_view json);
Result<InitReport> parse_init_report(std::string_view json);
Result<ExitRecord> parse_exit_record(std::string_view json);
Result<int> parse_signal(std::string_view json);
Result<RunId> parse_run(std::string_view json);
Result<std::vector<AccessKey>> parse_keys(std::string_view json);
Status check_samples(std::string_view json);

// encode_frame with the type's name.
std::string init_frame(InitFrame type, std::string_view payload);

}  // namespace autodl
