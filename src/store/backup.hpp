// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// A copy of a SQLite store while it is in use, and the way back. The master key is a file of its
// own and in no backup: without it the access keys of a backup can't be opened.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace autodl {

struct StoreFacts {
  std::string cluster;
  std::uint64_t epoch = 0;
  std::int64_t schema = 0;
};

// One moment of the store at `from`, whole and synced, in a new file of mode 0600; commits go on
// meanwhile. Blocks. An error leaves no file.
Status backup_store(const std::string& from, const std::string& to);

// Puts the backup in the store's place. kConflict store_in_use while a control has it open;
// kInvalid bad_backup for a file that is damaged or no store; kConflict other_cluster.
// The store that was there is kept as PATH.before-restore. The epoch jumps by more than any store
// reaches by being opened, so that every node takes the restored one for the newer; numbers of
// events jump too, so that no reader sees one twice. Cut off anywhere, it may be run again.
Result<StoreFacts> restore_store(const std::string& backup, const std::string& path,
                                 const Clock& clock);

}  // namespace autodl
