// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The veil: one more read-only layer on top of an image's own, made once per image. It holds the
// names that an instance needs and the image may lack or have otherwise: shutdown, poweroff and
// halt (links into the toolbox), /workspace where the image has none or an empty one, and the
// folders that mounts go to. So nothing of the image is changed, whatever it has at these names,
// and nothing of ours gets into the disk or into a saved image.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace autodl::runtime {

// Makes the layer at `path` for the image that is mounted (read-only) at `root`. Atomic: `path`
// exists whole or not at all. `root` is hostile: no link in it leads out of it.
Status make_veil(const std::string& root, const std::string& path);

}  // namespace autodl::runtime
