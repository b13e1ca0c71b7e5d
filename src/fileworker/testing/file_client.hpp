// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// FileClient: the asker's side of a file channel, blocking, for tests.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "fileworker/sha256.hpp"
#include "wire/file_messages.hpp"
#include "wire/frames.hpp"

namespace autodl::fileworker {

class FileClient {
 public:
  explicit FileClient(UniqueFd channel) : channel_(std::move(channel)) {}

  struct Got {
    std::string bytes;
    GetEnd end;
  };

  Result<std::int64_t> begin(const PutBegin& request) {
    ADL_TRY(reply, ask(FileFrame::kPutBegin, to_json(request)));
    ADL_TRY(received, parse_received(reply));
    return received.received;
  }
  Result<std::int64_t> part(std::int64_t offset, const std::string& bytes,
                            std::string sha256 = "") {
    if (sha256.empty()) sha256 = Sha256::of(bytes);
    send(FileFrame::kPutPart,
         to_json(PutPart{offset, static_cast<std::int64_t>(bytes.size()), sha256}));
    for (std::size_t at = 0; at < bytes.size(); at += 100'000)
      send(FileFrame::kData, bytes.substr(at, 100'000));
    ADL_TRY(reply, last_reply());
    ADL_TRY(received, parse_received(reply));
    return received.received;
  }
  Result<FileStat> commit(const std::string& sha256) {
    return stat_reply(FileFrame::kPutCommit, to_json(PutCommit{sha256}));
  }
  Status abort(const PutAbort& request) {
    auto reply = ask(FileFrame::kPutAbort, to_json(request));
    return reply.ok() ? Status() : Status(reply.error());
  }
  // The whole of it; begin.size is set here.
  Result<FileStat> put(PutBegin request, const std::string& bytes, std::size_t part_bytes) {
    request.size = static_cast<std::int64_t>(bytes.size());
    ADL_TRY(received, begin(request));
    for (auto at = static_cast<std::size_t>(received); at < bytes.size(); at += part_bytes) {
      ADL_TRY(now, part(static_cast<std::int64_t>(at), bytes.substr(at, part_bytes)));
      static_cast<void>(now);
    }
    return commit(Sha256::of(bytes));
  }
  Result<Got> get(const FileGet& request) {
    data_.clear();
    ADL_TRY(reply, ask(FileFrame::kGet, to_json(request)));
    ADL_TRY(end, parse_get_end(reply));
    return Got{data_, end};
  }
  Result<std::vector<FileStat>> list(const FileList& request) {
    entries_.clear();
    ADL_TRY(reply, ask(FileFrame::kList, to_json(request)));
    static_cast<void>(reply);
    return entries_;
  }
  Result<FileStat> stat(const std::string& path) {
    return stat_reply(FileFrame::kStat, to_json(PathOnly{path, 0}));
  }
  Result<FileStat> mkdir(const std::string& path) {
    return stat_reply(FileFrame::kMkdir, to_json(PathOnly{path, 0755}));
  }
  void send_raw(const std::string& bytes) {
    std::size_t at = 0;
    while (at < bytes.size()) {
      const ssize_t sent =
          ::send(channel_.get(), bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return;
      at += static_cast<std::size_t>(sent);
    }
  }

 private:
  void send(FileFrame type, const std::string& payload) { send_raw(file_frame(type, payload)); }
  Result<std::string> ask(FileFrame type, const std::string& payload) {
    send(type, payload);
    return last_reply();
  }
  Result<FileStat> stat_reply(FileFrame type, const std::string& payload) {
    ADL_TRY(reply, ask(type, payload));
    return parse_file_stat(reply);
  }
  Result<std::string> last_reply() {
    for (;;) {
      ADL_TRY(next, frames_.next());
      if (next) {
        const auto type = static_cast<FileFrame>(next->type);
        if (type == FileFrame::kOk || type == FileFrame::kEnd) return next->payload;
        if (type == FileFrame::kError) return parse_error_reply(next->payload);
        if (type == FileFrame::kReplyData) data_ += next->payload;
        if (type == FileFrame::kEntries) {
          ADL_TRY(some, parse_file_entries(next->payload));
          entries_.insert(entries_.end(), some.begin(), some.end());
        }
        continue;
      }
      char buffer[64 << 10];
      const ssize_t got = recv(channel_.get(), buffer, sizeof buffer, 0);
      if (got <= 0) return Error(ErrorKind::kUnavailable, "closed", "the worker has closed");
      frames_.put({buffer, static_cast<std::size_t>(got)});
    }
  }

  UniqueFd channel_;
  FrameReader frames_;
  std::string data_;
  std::vector<FileStat> entries_;
};

}  // namespace autodl::fileworker
