// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// A run's log as conmon writes it (k8s-file): "TIME stdout|stderr F|P TEXT\n" per line, P where the
// line goes on in the next record. Pure: bytes in, entries out; offsets are positions in the file.
//
// The node may have punched a hole into the middle of a long log: it reads as NULs and becomes one
// entry of the stream "platform". Text that is not UTF-8 gets U+FFFD for each wrong byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wire/api_types.hpp"

namespace autodl {

struct LogChunk {
  std::vector<api::LogEntry> entries;
  std::vector<std::int64_t> next_offsets;  // behind entries[i]: where to go on after it
  std::size_t consumed = 0;                // bytes; what follows is an unfinished record
};

// bytes begin at offset in the file. at_end: nothing will follow (the run is over), so an
// unfinished record is taken as it is.
LogChunk parse_container_log(std::string_view bytes, std::int64_t offset, bool at_end);

}  // namespace autodl
