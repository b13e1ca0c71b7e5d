// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "control/catalogue.hpp"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "model/card_types.hpp"

namespace autodl {
namespace {

Error bad(std::string message) {
  return Error(ErrorKind::kInvalid, "bad_catalogue", std::move(message),
               "correct the catalogue file");
}

// "12.4" -> 12040; 0 where it is not a version.
int parse_cuda(std::string_view text) {
  int major = 0;
  int minor = 0;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, major);
  if (first.ec != std::errc{} || major < 1 || major > 99) return 0;
  if (first.ptr != end && *first.ptr == '.') std::from_chars(first.ptr + 1, end, minor);
  return minor >= 0 && minor <= 99 ? major * 1'000 + minor * 10 : 0;
}

// "debian", "a/b:c" without a host: the first part names a registry only with a dot, a colon or as
// localhost.
bool names_registry(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view host = name.substr(0, slash);
  return host.find_first_of(".:") != std::string_view::npos || host == "localhost";
}

}  // namespace

Result<ImageCatalogue> ImageCatalogue::parse(std::string_view toml_text) {
  toml::table table;
  try {  // toml++ throws; turned into an error here
    table = toml::parse(toml_text);
  } catch (const toml::parse_error& failure) {
    return bad(
        fmt::format("catalogue, line {}: {}", failure.source().begin.line, failure.description()));
  }
  std::vector<CatalogueEntry> entries;
  const auto* images = table["image"].as_array();
  if (images == nullptr) return ImageCatalogue(std::move(entries));
  for (const auto& node : *images) {
    const auto* item = node.as_table();
    if (item == nullptr) return bad("catalogue: an [[image]] is not a table");
    CatalogueEntry entry;
    entry.name = (*item)["name"].value_or(std::string());
    if (entry.name.empty()) return bad("catalogue: an [[image]] has no name");
    entry.reference = (*item)["reference"].value_or(entry.name);
    entry.description = (*item)["description"].value_or(std::string());
    if (const auto cuda = (*item)["cuda"].value<std::string>()) {
      entry.cuda = parse_cuda(*cuda);
      if (entry.cuda == 0 && !cuda->empty() && *cuda != "none") {
        return bad(
            fmt::format("catalogue, image {}: cuda '{}' is not a version", entry.name, *cuda));
      }
    }
    if (const auto* aliases = (*item)["aliases"].as_array()) {
      for (const auto& alias : *aliases) {
        if (const auto text = alias.value<std::string>()) entry.aliases.push_back(*text);
      }
    }
    entries.push_back(std::move(entry));
  }
  return ImageCatalogue(std::move(entries));
}

Result<ImageCatalogue> ImageCatalogue::load(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return bad(fmt::format("open the catalogue '{}': it is not there or not readable", path));
  }
  std::ostringstream text;
  text << file.rdbuf();
  return parse(text.str());
}

Result<ResolvedImage> ImageCatalogue::resolve(std::string_view name, int driver_cuda,
                                              const std::vector<std::string>& present) const {
  for (const auto& entry : entries_) {
    if (entry.name == name) return ResolvedImage{entry.reference, false, false};
  }
  if (std::find(present.begin(), present.end(), name) != present.end()) {
    return ResolvedImage{std::string(name), false, false};
  }
  // Of the entries that an alias may stand for: the one with the most CUDA the driver can do.
  const CatalogueEntry* best = nullptr;
  for (const auto& entry : entries_) {
    const bool alias =
        std::find(entry.aliases.begin(), entry.aliases.end(), name) != entry.aliases.end();
    if (!alias || entry.cuda > driver_cuda) continue;
    if (best == nullptr || entry.cuda > best->cuda) best = &entry;
  }
  if (best != nullptr) return ResolvedImage{best->reference, true, best->cuda == 0};
  // Any OCI reference that can be pulled as it stands; our own scheme and bare words cannot.
  if (names_registry(name) ||
      (name.find('/') != std::string_view::npos && !name.starts_with("autodl/"))) {
    return ResolvedImage{std::string(name), false, false};
  }
  const auto near = candidates(name);
  return Error(ErrorKind::kInvalid, "unknown_image", fmt::format("there is no image '{}'", name),
               near.empty() ? "see `autodl images`"
                            : fmt::format("did you mean {}?", fmt::join(near, " or ")));
}

std::vector<std::string> ImageCatalogue::candidates(std::string_view name) const {
  std::vector<std::string> known;
  for (const auto& entry : entries_) {
    known.push_back(entry.name);
    known.insert(known.end(), entry.aliases.begin(), entry.aliases.end());
  }
  return near_names(name, known);
}

}  // namespace autodl
