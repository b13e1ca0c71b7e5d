// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// ImageCatalogue: names and aliases people write -> the reference the node is told.
//
// TOML (images/catalogue.toml): one [[image]] table per entry with name, aliases (a list: names
// that it stands in for; several entries may share one, the driver decides), reference (default:
// the name), description, cuda ("12.4": the least CUDA of the driver; none: a CPU image).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace autodl {

struct CatalogueEntry {
  std::string name;
  std::vector<std::string> aliases;
  std::string reference;
  std::string description;
  int cuda = 0;  // major * 1000 + minor * 10; 0: a CPU image
};

struct ResolvedImage {
  std::string reference;
  bool substituted = false;  // an alias: another name stands for it
  bool loses_cuda = false;   // substituted by a CPU image
};

class ImageCatalogue {
 public:
  ImageCatalogue() = default;
  explicit ImageCatalogue(std::vector<CatalogueEntry> entries) : entries_(std::move(entries)) {}
  static Result<ImageCatalogue> parse(std::string_view toml_text);
  static Result<ImageCatalogue> load(const std::string& path);

  const std::vector<CatalogueEntry>& entries() const { return entries_; }

  // driver_cuda: what the node's driver can do (0: no driver, cards are simulated: a CPU image
  // is then what an alias means). present: references in the node's store, accepted as they are.
  // kInvalid unknown_image; candidates(name) lists near names.
  Result<ResolvedImage> resolve(std::string_view name, int driver_cuda,
                                const std::vector<std::string>& present) const;
  std::vector<std::string> candidates(std::string_view name) const;

 private:
  std::vector<CatalogueEntry> entries_;
};

}  // namespace autodl
