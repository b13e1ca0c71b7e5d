// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Upload: one file on its way into the instance. The bytes gather in DIR/.autodl-part-TICKET and
// replace the target in one rename once their hash is right; until then nobody sees half a file.
// A part is written only after its hash was verified, so that the part file is always a true
// prefix.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "fileworker/root_dir.hpp"
#include "wire/file_messages.hpp"

namespace autodl::fileworker {

class Upload {
 public:
  // Finds the part file of this ticket, or makes it; parents too. What stands there under the part
  // file's name but is not an ordinary file with one link is thrown away.
  static Result<Upload> begin(const RootDir& root, PutBegin begin);
  static Status abort(const RootDir& root, const PutAbort& abort);

  std::int64_t received() const { return received_; }
  // bytes: part.length of them. hash_mismatch, gap, too_long, no_space.
  Status add_part(const PutPart& part, std::string_view bytes);
  // incomplete, hash_mismatch (the part file is dropped: it can't become right).
  Result<FileStat> commit(const std::string& sha256);

 private:
  Upload(PutBegin begin, Place place, UniqueFd part, std::int64_t received)
      : begin_(std::move(begin)),
        place_(std::move(place)),
        part_(std::move(part)),
        received_(received) {}
  Status check_target(struct stat& old, bool& exists) const;
  std::string part_name() const;

  PutBegin begin_;
  Place place_;
  UniqueFd part_;
  std::int64_t received_ = 0;
};

}  // namespace autodl::fileworker
