// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Agent's streams: what gateway and control ask for by streams.sock.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "agent/agent.hpp"
#include "agent/init_dial.hpp"

namespace autodl {

namespace {

constexpr Millis kDialLimit{5'000};

Error not_running(const InstanceId& id) {
  return Error(ErrorKind::kConflict, "not_running",
               fmt::format("instance {} does not run", id.str()),
               "start it first and wait until it is running");
}

Result<StreamAddress> address_or_loopback(const std::string& text) {
  if (text.empty()) return StreamAddress{"127.0.0.1", 0};
  return parse_stream_address(text);
}

}  // namespace

Result<UniqueFd> Agent::open_stream(const StreamRequest& request) {
  if (request.kind == "file") return open_files(request);
  if (request.kind == "log") return open_log(request);
  return open_inside(request);
}

Result<UniqueFd> Agent::open_inside(const StreamRequest& request) {
  std::optional<RunningRun> run;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& one : running_)
      if (one.instance == request.instance) run = one;
  }
  if (!run || !run->open || (!request.run.empty() && request.run != run->run))
    return not_running(request.instance);
  InitDial dial;
  ADL_TRY(target, parse_stream_target(request.kind == "tcp" ? fmt::format("tcp:{}", request.port)
                                                            : request.kind));
  if (target.kind == StreamKind::kControl)
    return Error(ErrorKind::kDenied, "bad_stream_kind", "a control stream is the node's alone");
  dial.target = target;
  ADL_TRY(client, address_or_loopback(request.client));
  ADL_TRY(endpoint, address_or_loopback(request.local));
  dial.client = std::move(client);
  dial.endpoint = std::move(endpoint);
  dial.address = parts_.runtime.address_of(run->slot);
  ADL_TRY(key, runner_.run_key(run->instance, run->run));
  dial.key = std::move(key);
  auto fd = dial_init(dial, parts_.random, kDialLimit);
  if (!fd.ok() && fd.error().code() == "not_ready")
    return Error(ErrorKind::kUnavailable, "not_ready",
                 fmt::format("instance {} does not answer", request.instance.str()),
                 "try again in a moment");
  return fd;
}

Result<UniqueFd> Agent::open_files(const StreamRequest& request) {
  std::uint32_t slot = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = with_disk_.find(request.instance);
    if (found == with_disk_.end())
      return Error(ErrorKind::kConflict, "no_disk",
                   fmt::format("instance {} has no disk here yet", request.instance.str()),
                   "wait until its disk is ready");
    slot = found->second;
  }
  if (!parts_.start_file_worker)
    return Error(ErrorKind::kUnsupported, "no_file_worker", "this node has no file worker");
  const auto mutex = lock_of(request.instance);
  const std::lock_guard held(*mutex);
  ADL_TRY(namespaces, parts_.runtime.namespaces(request.instance, slot));
  return parts_.start_file_worker(std::move(namespaces));
}

Result<UniqueFd> Agent::open_log(const StreamRequest& request) {
  const auto path = parts_.runtime.log_path(request.instance, request.run);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid() && errno == ENOENT)
    return Error(ErrorKind::kNotFound, "no_log",
                 fmt::format("run {} has no log here", request.run.str()));
  if (!fd.valid()) return errno_error(fmt::format("open '{}'", path), errno);
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return Error(ErrorKind::kInternal, "bad_log", fmt::format("'{}' is no regular file", path));
  return fd;
}

}  // namespace autodl
