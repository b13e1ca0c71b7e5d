// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// InstanceFiles: what a node keeps of an instance beside its journal and must have again after a
// restart: host key, the image's environment, and of the present run its key and what init is told.
// Small files, written whole (0600, synced, renamed).
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace autodl {

class InstanceFiles {
 public:
  virtual ~InstanceFiles() = default;
  // name: "host_key", "image.json", "run.json"
  virtual Status put(const InstanceId& id, const std::string& name, const std::string& bytes) = 0;
  virtual Result<std::optional<std::string>> get(const InstanceId& id, const std::string& name) = 0;
  virtual Status remove_all(const InstanceId& id) = 0;
};

class DiskInstanceFiles final : public InstanceFiles {
 public:
  // Files lie in `folder`/ID, where the journal is too.
  explicit DiskInstanceFiles(std::string folder) : folder_(std::move(folder)) {}
  Status put(const InstanceId& id, const std::string& name, const std::string& bytes) override;
  Result<std::optional<std::string>> get(const InstanceId& id, const std::string& name) override;
  Status remove_all(const InstanceId& id) override;

 private:
  const std::string folder_;
};

class MemoryInstanceFiles final : public InstanceFiles {
 public:
  Status put(const InstanceId& id, const std::string& name, const std::string& bytes) override {
    files_[{id, name}] = bytes;
    return {};
  }
  Result<std::optional<std::string>> get(const InstanceId& id, const std::string& name) override {
    const auto found = files_.find({id, name});
    if (found == files_.end()) return std::optional<std::string>{};
    return std::optional(found->second);
  }
  Status remove_all(const InstanceId& id) override {
    std::erase_if(files_, [&](const auto& entry) { return entry.first.first == id; });
    return {};
  }

 private:
  std::map<std::pair<InstanceId, std::string>, std::string> files_;
};

}  // namespace autodl
