// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Listing: a page of what is below a folder, in byte order of the components, depth first. Nothing
// below the named folder is followed; part files of uploads are not shown. Bounded in depth, in
// names per folder and in entries per page.
#pragma once

#include <vector>

#include "fileworker/root_dir.hpp"

namespace autodl::fileworker {

inline constexpr std::size_t kDepthMax = 64;
inline constexpr std::size_t kNamesPerFolderMax = 200'000;

struct ListPage {
  std::vector<FileStat> entries;
  ListEnd end;
};

// The cursor of the next page is the last entry's path: entries that appear or vanish meanwhile
// neither repeat nor hide others.
Result<ListPage> list_page(const RootDir& root, const FileList& request);

// Whether a comes before b in the listing's order: '/' sorts before every other byte.
bool path_less(std::string_view a, std::string_view b);

bool is_utf8(std::string_view text);

}  // namespace autodl::fileworker
