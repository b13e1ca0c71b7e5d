// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "fileworker/worker.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "fileworker/listing.hpp"
#include "fileworker/sha256.hpp"

namespace autodl::fileworker {
namespace {

constexpr int kIdleMs = 15 * 60 * 1000;
constexpr std::size_t kChunkBytes = 256 << 10;
constexpr std::size_t kEntriesPerFrame = 50;  // 50 paths of 4 KiB with targets stay below 1 MiB

Error broken(std::string message) {
  return Error(ErrorKind::kInvalid, "bad_message", "file channel: " + std::move(message));
}

}  // namespace

Result<std::optional<Frame>> Worker::receive() {
  for (;;) {
    ADL_TRY(next, frames_.next());
    if (next) return std::move(next);
    pollfd readable{channel_.get(), POLLIN, 0};
    const int ready = poll(&readable, 1, kIdleMs);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0)
      return Error(ErrorKind::kUnavailable, "idle", "nothing was asked for 15 minutes");
    char buffer[64 << 10];
    const ssize_t got = recv(channel_.get(), buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::optional<Frame>{};
    frames_.put({buffer, static_cast<std::size_t>(got)});
  }
}

Status Worker::send(FileFrame type, std::string_view payload) {
  const std::string frame = file_frame(type, payload);
  std::string_view rest = frame;
  while (!rest.empty()) {
    const ssize_t sent = ::send(channel_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return errno_error("answer", errno, ErrorKind::kUnavailable);
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

// What fails in a request is told; what comes back from here is a broken channel.
Status Worker::answer(const Status& status, std::string_view ok_payload) {
  if (status.ok()) return send(FileFrame::kOk, ok_payload);
  return send(FileFrame::kError, to_json(status.error()));
}

Status Worker::serve() {
  for (;;) {
    ADL_TRY(frame, receive());
    if (!frame) return {};
    ADL_TRY_STATUS(handle(*frame));
  }
}

Status Worker::handle(const Frame& frame) {
  switch (static_cast<FileFrame>(frame.type)) {
    case FileFrame::kPutBegin: return put_begin(frame);
    case FileFrame::kPutPart: return put_part(frame);
    case FileFrame::kPutCommit: return put_commit(frame);
    case FileFrame::kPutAbort: return put_abort(frame);
    case FileFrame::kGet: return get(frame);
    case FileFrame::kList: return list(frame);
    case FileFrame::kStat: return stat(frame);
    case FileFrame::kMkdir: return make_folder(frame);
    default: return broken(fmt::format("frame type {} is no request", frame.type));
  }
}

Status Worker::put_begin(const Frame& frame) {
  upload_.reset();
  const auto request = parse_put_begin(frame.payload);
  if (!request.ok()) return answer(request.error(), "");
  auto upload = Upload::begin(root_, request.value());
  if (!upload.ok()) return answer(upload.error(), "");
  upload_ = std::move(upload).value();
  return answer({}, to_json(Received{upload_->received()}));
}

Status Worker::put_part(const Frame& frame) {
  const auto part = parse_put_part(frame.payload);
  // Without a length nobody knows which data frames belong to it.
  if (!part.ok()) {
    ADL_TRY_STATUS(answer(part.error(), ""));
    return part.error();
  }
  const auto length = static_cast<std::size_t>(part.value().length);
  std::string bytes;
  bytes.reserve(length);
  while (bytes.size() < length) {
    ADL_TRY(data, receive());
    if (!data) return {};
    if (static_cast<FileFrame>(data->type) != FileFrame::kData ||
        bytes.size() + data->payload.size() > length)
      return broken("a part's data frames do not add up to its length");
    bytes += data->payload;
  }
  if (!upload_)
    return answer(Error(ErrorKind::kConflict, "no_upload", "put_part came without put_begin"), "");
  const Status added = upload_->add_part(part.value(), bytes);
  return answer(added, to_json(Received{upload_->received()}));
}

Status Worker::put_commit(const Frame& frame) {
  const auto request = parse_put_commit(frame.payload);
  if (!request.ok()) return answer(request.error(), "");
  if (!upload_)
    return answer(Error(ErrorKind::kConflict, "no_upload", "put_commit came without put_begin"),
                  "");
  const auto stat = upload_->commit(request.value().sha256);
  if (!stat.ok()) return answer(stat.error(), "");
  upload_.reset();
  return answer({}, to_json(stat.value()));
}

Status Worker::put_abort(const Frame& frame) {
  upload_.reset();
  const auto request = parse_put_abort(frame.payload);
  if (!request.ok()) return answer(request.error(), "");
  return answer(Upload::abort(root_, request.value()), "{}");
}

Status Worker::get(const Frame& frame) {
  const auto request = parse_file_get(frame.payload);
  if (!request.ok()) return answer(request.error(), "");
  const FileGet& wanted = request.value();
  const auto file = root_.open(wanted.path, O_RDONLY);
  if (!file.ok()) return answer(file.error(), "");
  struct stat info{};
  if (fstat(file.value().get(), &info) != 0)
    return answer(file_error("read", wanted.path, errno), "");
  if (S_ISDIR(info.st_mode)) return answer(file_error("read", wanted.path, EISDIR), "");
  const std::string etag = etag_of(info);
  if (!wanted.etag.empty() && wanted.etag != etag)
    return answer(Error(ErrorKind::kConflict, "file_changed",
                        fmt::format("'{}' has changed meanwhile", wanted.path),
                        "read it again from the start"),
                  "");
  Sha256 hash;
  std::string buffer(kChunkBytes, '\0');
  std::int64_t sent = 0;
  while (sent < wanted.length) {
    const auto want =
        std::min<std::size_t>(kChunkBytes, static_cast<std::size_t>(wanted.length - sent));
    const ssize_t got = pread(file.value().get(), buffer.data(), want, wanted.offset + sent);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return answer(file_error("read", wanted.path, errno), "");
    if (got == 0) break;
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
    hash.add(bytes);
    ADL_TRY_STATUS(send(FileFrame::kReplyData, bytes));
    sent += got;
  }
  return send(FileFrame::kEnd, to_json(GetEnd{sent, hash.hex(), info.st_size, etag}));
}

Status Worker::list(const Frame& frame) {
  const auto request = parse_file_list(frame.payload);
  if (!request.ok()) return answer(request.error(), "");
  const auto page = list_page(root_, request.value());
  if (!page.ok()) return answer(page.error(), "");
  const auto& entries = page.value().entries;
  for (std::size_t at = 0; at < entries.size(); at += kEntriesPerFrame) {
    const auto end = std::min(at + kEntriesPerFrame, entries.size());
    const std::vector<FileStat> some(entries.begin() + static_cast<std::ptrdiff_t>(at),
                                     entries.begin() + static_cast<std::ptrdiff_t>(end));
    ADL_TRY_STATUS(send(FileFrame::kEntries, to_json(some)));
  }
  return send(FileFrame::kEnd, to_json(page.value().end));
}

Status Worker::stat(const Frame& frame) {
  const auto request = parse_path_only(frame.payload);
  if (!request.ok()) return answer(request.error(), "");
  const auto file = root_.open(request.value().path, O_PATH);
  struct stat info{};
  if (!file.ok()) return answer(file.error(), "");
  if (fstat(file.value().get(), &info) != 0)
    return answer(file_error("look at", request.value().path, errno), "");
  return answer({}, to_json(to_file_stat(info, request.value().path)));
}

Status Worker::make_folder(const Frame& frame) {
  const auto request = parse_path_only(frame.payload);
  if (!request.ok()) return answer(request.error(), "");
  const auto folder = root_.make_folders(request.value().path, request.value().mode);
  struct stat info{};
  if (!folder.ok()) return answer(folder.error(), "");
  if (fstat(folder.value().get(), &info) != 0)
    return answer(file_error("make folder", request.value().path, errno), "");
  return answer({}, to_json(to_file_stat(info, request.value().path)));
}

}  // namespace autodl::fileworker
