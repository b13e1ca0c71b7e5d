// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// FileClient: requests to an instance's file worker (wire/file_messages.hpp) over a connection that
// the node gave. One request at a time. Everything the worker says is hostile input: bounded,
// parsed, and an answer out of turn ends the connection ("bad_worker").
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/conn.hpp"
#include "wire/file_messages.hpp"
#include "wire/frames.hpp"

namespace autodl {

struct FileBytes {
  std::string bytes;
  GetEnd end;
};

struct FileEntries {
  std::vector<FileStat> items;
  ListEnd end;
};

class FileClient {
 public:
  // silence: the longest wait for the worker's next bytes.
  FileClient(std::unique_ptr<Conn> conn, Millis silence);

  Task<Result<Received>> put_begin(PutBegin message);
  // A part: announced, then its bytes in order, then finish_part for the worker's word.
  Task<Status> begin_part(PutPart part);
  Task<Status> part_data(std::string_view bytes);  // bytes must outlive the task
  Task<Result<Received>> finish_part();
  Task<Result<FileStat>> put_commit(PutCommit message);
  Task<Status> put_abort(PutAbort message);
  Task<Result<FileBytes>> get(FileGet message);
  Task<Result<FileEntries>> list(FileList message);
  Task<Result<FileStat>> stat(std::string path);
  Task<Result<FileStat>> make_directory(PathOnly message);

 private:
  Task<Status> send(FileFrame type, std::string payload);
  Task<Result<Frame>> receive();
  // The payload of the `ok` that must come next.
  Task<Result<std::string>> receive_ok();
  Task<Result<std::string>> ask(FileFrame type, std::string payload);

  std::unique_ptr<Conn> conn_;
  Millis silence_;
  FrameReader reader_;
  std::vector<char> buffer_;
};

}  // namespace autodl
