// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// MemoryJournal: for tests and the simulation. Survives the crash of what uses it; the n-th write
// from now fails, or is cut off after some of its records (fail_after).
#pragma once

#include <optional>

#include "journal/journal.hpp"

namespace autodl {

class MemoryJournal final : public Journal {
 public:
  Result<std::vector<LoadedJournal>> load_all() override {
    std::vector<LoadedJournal> loaded;
    for (const auto& [name, records] : files) loaded.push_back({name, records, {}});
    return loaded;
  }
  Status append(const std::string& name, const std::vector<std::string>& records) override {
    if (records.empty()) return {};
    ++writes;
    if (fail_after.has_value() && (*fail_after)-- == 0) {
      fail_after.reset();
      return Error(ErrorKind::kInternal, "disk_error", "write the journal: the disk failed");
    }
    auto& file = files[name];
    file.insert(file.end(), records.begin(), records.end());
    return {};
  }
  Status rewrite(const std::string& name, const std::vector<std::string>& records) override {
    ++writes;
    files[name] = records;
    return {};
  }
  Status remove(const std::string& name) override {
    files.erase(name);
    return {};
  }

  std::map<std::string, std::vector<std::string>> files;
  std::optional<int> fail_after;  // 0: the next append fails, once
  int writes = 0;
};

}  // namespace autodl
