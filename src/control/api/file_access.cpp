// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "control/api/file_access.hpp"

namespace autodl {
namespace {

Result<InstanceId> find_instance(ControlCore& core, const AccountId& account,
                                 const std::string& key) {
  ADL_TRY(view, core.instance(account, key));
  if (view.row.state == InstanceState::kReleased || view.row.release_asked)
    return Error(ErrorKind::kConflict, "released", "the instance is released; its files are gone");
  if (!view.row.disk_ready)
    return Error(ErrorKind::kConflict, "disk_not_ready", "the instance's disk is still being made",
                 "try again when its event disk_ready has come");
  return view.row.id;
}

}  // namespace

Task<Result<InstanceId>> instance_with_files(Api* api, AccountId account, std::string key) {
  auto command = [account = std::move(account), key = std::move(key)](ControlCore& core) {
    return find_instance(core, account, key);
  };
  co_return co_await api->runner.run(std::move(command));
}

Task<Result<std::unique_ptr<FileLoan>>> borrow_worker(Api* api, InstanceId instance) {
  auto client = co_await api->files.acquire(instance);
  if (!client.ok()) co_return client.error();
  co_return std::make_unique<FileLoan>(api->files, std::move(instance), std::move(*client));
}

}  // namespace autodl
