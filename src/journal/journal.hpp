// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Journal: append-only records under names. What append() returned ok for is there after any crash;
// what failed or was cut off is there whole or not at all.
//
// File format: records of u32 little-endian length, u32 CRC-32C of the payload, u32 CRC-32C of
// these eight bytes, payload. Different names may be used from different threads at once; one name
// by one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace autodl {

inline constexpr std::size_t kJournalRecordBytesMax = 1 << 20;

struct LoadedJournal {
  std::string name;
  std::vector<std::string> records;
  std::string damage;  // not empty: a bad record that is not a torn tail; records are those before
};

class Journal {
 public:
  virtual ~Journal() = default;
  virtual Result<std::vector<LoadedJournal>> load_all() = 0;
  // All of them or (where it fails, or at a crash) a prefix of them; one sync.
  virtual Status append(const std::string& name, const std::vector<std::string>& records) = 0;
  // Replaces all records atomically.
  virtual Status rewrite(const std::string& name, const std::vector<std::string>& records) = 0;
  virtual Status remove(const std::string& name) = 0;  // fine where there is none
};

class FileJournal final : public Journal {
 public:
  // Each name is a folder below `folder` (made, 0700) with a file "journal" in it.
  explicit FileJournal(std::string folder) : folder_(std::move(folder)) {}

  Result<std::vector<LoadedJournal>> load_all() override;
  Status append(const std::string& name, const std::vector<std::string>& records) override;
  Status rewrite(const std::string& name, const std::vector<std::string>& records) override;
  Status remove(const std::string& name) override;

 private:
  std::string path_of(const std::string& name) const;
  Result<LoadedJournal> load(const std::string& name);
  Result<int> open_for_append(const std::string& name);

  const std::string folder_;
  std::mutex mutex_;  // guards open_
  std::map<std::string, UniqueFd> open_;
};

// Whole records of bytes; valid_bytes: where the torn tail begins. Pure.
struct ParsedJournal {
  std::vector<std::string> records;
  std::size_t valid_bytes = 0;
  std::string damage;
};
ParsedJournal parse_journal(std::string_view bytes);
std::string encode_journal_record(std::string_view payload);
std::uint32_t crc32c(std::string_view bytes);

}  // namespace autodl
