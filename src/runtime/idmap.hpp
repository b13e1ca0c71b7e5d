// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Id mapping: the image's files (uid 0…65,535 on disk) seen as an instance's own range, without a
// chown and without a copy.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace autodl::runtime {

// A user namespace that maps 0…65,535 to first_uid…; lives as long as the descriptor.
Result<UniqueFd> make_user_namespace(std::uint32_t first_uid);

// Writes "0 first 65536" to the process's uid_map and gid_map.
Status write_id_maps(int pid, std::uint32_t first_uid);

// Mounts source at target with the namespace's mapping, read-only, nosuid, nodev.
Status mount_idmapped(const std::string& source, const std::string& target, int user_namespace);

}  // namespace autodl::runtime
