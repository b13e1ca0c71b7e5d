// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What the file handlers share: the instance that a request means, and a worker for it.
#pragma once

#include <memory>
#include <string>

#include "control/api/api.hpp"

namespace autodl {

// The instance's id; kConflict "disk_not_ready" while its disk is not there, "released" after.
Task<Result<InstanceId>> instance_with_files(Api* api, AccountId account, std::string key);

// A worker on loan for that instance.
Task<Result<std::unique_ptr<FileLoan>>> borrow_worker(Api* api, InstanceId instance);

}  // namespace autodl
