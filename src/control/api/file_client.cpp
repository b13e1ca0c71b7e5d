// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "control/api/file_client.hpp"

#include <fmt/format.h>

namespace autodl {
namespace {

constexpr std::size_t kDataFrameBytes = 256 * 1024;

Error bad_worker(std::string_view what) {
  return Error(ErrorKind::kUnavailable, "bad_worker",
               fmt::format("the instance's file worker answered wrongly: {}", what), "try again");
}

bool is(const Frame& frame, FileFrame type) {
  return frame.type == static_cast<std::uint8_t>(type);
}

}  // namespace

FileClient::FileClient(std::unique_ptr<Conn> conn, Millis silence)
    : conn_(std::move(conn)), silence_(silence), buffer_(kDataFrameBytes) {}

Task<Status> FileClient::send(FileFrame type, std::string payload) {
  conn_->expires_after(silence_);
  const std::string bytes = file_frame(type, payload);
  const auto sent = co_await conn_->write_all(bytes);
  co_return sent;
}

Task<Result<Frame>> FileClient::receive() {
  while (true) {
    auto next = reader_.next();
    if (!next.ok()) co_return bad_worker(next.error().message());
    if (*next) co_return std::move(**next);
    conn_->expires_after(silence_);
    const auto got = co_await conn_->read_some(buffer_);
    if (!got.ok()) co_return got.error().context("wait for the instance's file worker");
    if (*got == 0)
      co_return Error(ErrorKind::kUnavailable, "worker_gone",
                      "the instance's file worker has ended", "try again");
    reader_.put({buffer_.data(), *got});
  }
}

Task<Result<std::string>> FileClient::receive_ok() {
  auto frame = co_await receive();
  if (!frame.ok()) co_return frame.error();
  if (is(*frame, FileFrame::kError)) co_return parse_error_reply(frame->payload);
  if (!is(*frame, FileFrame::kOk)) co_return bad_worker(fmt::format("type {}", frame->type));
  co_return std::move(frame->payload);
}

Task<Result<std::string>> FileClient::ask(FileFrame type, std::string payload) {
  const auto sent = co_await send(type, std::move(payload));
  if (!sent.ok()) co_return sent.error();
  co_return co_await receive_ok();
}

Task<Result<Received>> FileClient::put_begin(PutBegin message) {
  auto answer = co_await ask(FileFrame::kPutBegin, to_json(message));
  if (!answer.ok()) co_return answer.error();
  co_return parse_received(*answer);
}

Task<Status> FileClient::begin_part(PutPart part) {
  co_return co_await send(FileFrame::kPutPart, to_json(part));
}

Task<Status> FileClient::part_data(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto piece = bytes.substr(0, kDataFrameBytes);
    conn_->expires_after(silence_);
    std::string header = file_frame(FileFrame::kData, piece);
    const auto sent = co_await conn_->write_all(header);
    if (!sent.ok()) co_return sent.error();
    bytes.remove_prefix(piece.size());
  }
  co_return Status{};
}

Task<Result<Received>> FileClient::finish_part() {
  auto answer = co_await receive_ok();
  if (!answer.ok()) co_return answer.error();
  co_return parse_received(*answer);
}

Task<Result<FileStat>> FileClient::put_commit(PutCommit message) {
  auto answer = co_await ask(FileFrame::kPutCommit, to_json(message));
  if (!answer.ok()) co_return answer.error();
  co_return parse_file_stat(*answer);
}

Task<Status> FileClient::put_abort(PutAbort message) {
  const auto answer = co_await ask(FileFrame::kPutAbort, to_json(message));
  if (!answer.ok()) co_return answer.error();
  co_return Status{};
}

Task<Result<FileBytes>> FileClient::get(FileGet message) {
  const auto length = message.length;
  const auto sent = co_await send(FileFrame::kGet, to_json(message));
  if (!sent.ok()) co_return sent.error();
  FileBytes file;
  while (true) {
    auto frame = co_await receive();
    if (!frame.ok()) co_return frame.error();
    if (is(*frame, FileFrame::kError)) co_return parse_error_reply(frame->payload);
    if (is(*frame, FileFrame::kEnd)) {
      auto end = parse_get_end(frame->payload);
      if (!end.ok()) co_return bad_worker(end.error().message());
      file.end = std::move(*end);
      if (file.end.length != static_cast<std::int64_t>(file.bytes.size()))
        co_return bad_worker("another length than it sent");
      co_return file;
    }
    if (!is(*frame, FileFrame::kReplyData)) co_return bad_worker("no data");
    file.bytes += frame->payload;
    if (static_cast<std::int64_t>(file.bytes.size()) > length)
      co_return bad_worker("more bytes than were asked for");
  }
}

Task<Result<FileEntries>> FileClient::list(FileList message) {
  const auto limit = message.limit;
  const auto sent = co_await send(FileFrame::kList, to_json(message));
  if (!sent.ok()) co_return sent.error();
  FileEntries list;
  while (true) {
    auto frame = co_await receive();
    if (!frame.ok()) co_return frame.error();
    if (is(*frame, FileFrame::kError)) co_return parse_error_reply(frame->payload);
    if (is(*frame, FileFrame::kEnd)) {
      auto end = parse_list_end(frame->payload);
      if (!end.ok()) co_return bad_worker(end.error().message());
      list.end = std::move(*end);
      co_return list;
    }
    if (!is(*frame, FileFrame::kEntries)) co_return bad_worker("no entries");
    auto entries = parse_file_entries(frame->payload);
    if (!entries.ok()) co_return bad_worker(entries.error().message());
    for (auto& entry : *entries) list.items.push_back(std::move(entry));
    if (static_cast<std::int64_t>(list.items.size()) > limit)
      co_return bad_worker("more entries than were asked for");
  }
}

Task<Result<FileStat>> FileClient::stat(std::string path) {
  PathOnly message;
  message.path = std::move(path);
  auto answer = co_await ask(FileFrame::kStat, to_json(message));
  if (!answer.ok()) co_return answer.error();
  co_return parse_file_stat(*answer);
}

Task<Result<FileStat>> FileClient::make_directory(PathOnly message) {
  auto answer = co_await ask(FileFrame::kMkdir, to_json(message));
  if (!answer.ok()) co_return answer.error();
  co_return parse_file_stat(*answer);
}

}  // namespace autodl
