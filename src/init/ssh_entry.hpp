// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// SSH logins: the toolbox's `sshd -i` on the very socket that the node handed over, with a key file
// made for that client. sshd would take the node for the client; the toolbox's shim answers its
// getpeername() from AUTODL_SSH_PEER instead, so that from= lists, logs and SSH_CLIENT are right.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "init/event_loop.hpp"
#include "init/process.hpp"
#include "wire/init_messages.hpp"
#include "wire/proxy_v2.hpp"

namespace autodl::init {

class SshEntry {
 public:
  // run_dir: /run/autodl; holds the host key, keys per connection.
  SshEntry(EventLoop& loop, Children& children, std::string run_dir)
      : loop_(loop), children_(children), run_dir_(std::move(run_dir)) {}

  // Writes the host key; again for another key.
  Status prepare(const InitSetup& setup);
  void set_keys(std::vector<AccessKey> keys) { keys_ = std::move(keys); }

  // Starts sshd on a socketpair and reads its banner within 15 s.
  using TestDone = std::function<void(Result<std::string> banner)>;
  void self_test(TestDone done);

  // Starts sshd for one client. on_end: when that sshd has gone.
  Status serve(UniqueFd socket, const ProxyHeader& header, std::function<void()> on_end);

 private:
  struct Test;
  Result<pid_t> start_sshd(int socket, int stderr_fd, const std::string& keys_file,
                           std::string peer, std::string connection);

  EventLoop& loop_;
  Children& children_;
  std::string run_dir_;
  std::vector<AccessKey> keys_;
  std::uint64_t serial_ = 0;
};

}  // namespace autodl::init
