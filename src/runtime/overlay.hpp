// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Overlay mounts over many layers: the layers get short names under one folder, and the mount call
// is made from there, since mount options end at one page (4 KiB).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace autodl::runtime {

// "lowerdir=0:1:2…": names relative to the folder with the layers.
std::string overlay_options(std::size_t layers, bool writable);

// Mounts layers (top first) as one root at FOLDER/r. Where user_namespace >= 0 they are mapped by
// it, and FOLDER/d/upper and FOLDER/d/work make it writable; otherwise the mount is read-only.
// The layers' own mounts (FOLDER/l/0…) are gone afterwards: the overlay holds them.
Status mount_layers(const std::string& folder, const std::vector<std::string>& layers,
                    int user_namespace);

// Takes away what a cut-off mount_layers left at FOLDER/l.
Status unmount_layers(const std::string& folder);

}  // namespace autodl::runtime
