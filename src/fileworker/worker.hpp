// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Worker: serves one channel until its end (wire/file_messages.hpp says what is asked and
// answered). Knows nothing of namespaces: it works below whatever root it is given.
#pragma once

#include <optional>
#include <string>

#include "fileworker/root_dir.hpp"
#include "fileworker/upload.hpp"
#include "wire/frames.hpp"

namespace autodl::fileworker {

class Worker {
 public:
  Worker(RootDir root, UniqueFd channel)
      : root_(std::move(root)), channel_(std::move(channel)), frames_(kFramePayloadMax) {}

  // Returns when the peer has closed; kInvalid where it sent what is no request; kUnavailable when
  // nothing came for 15 minutes.
  Status serve();

 private:
  Status handle(const Frame& frame);
  Status put_begin(const Frame& frame);
  Status put_part(const Frame& frame);
  Status put_commit(const Frame& frame);
  Status put_abort(const Frame& frame);
  Status get(const Frame& frame);
  Status list(const Frame& frame);
  Status stat(const Frame& frame);
  Status make_folder(const Frame& frame);

  Result<std::optional<Frame>> receive();  // nothing: the peer has closed
  Status send(FileFrame type, std::string_view payload);
  Status answer(const Status& status, std::string_view ok_payload);

  RootDir root_;
  UniqueFd channel_;
  FrameReader frames_;
  std::optional<Upload> upload_;
};

}  // namespace autodl::fileworker
