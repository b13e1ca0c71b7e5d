// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "wire/api_rules.hpp"

namespace autodl::api {
namespace {

constexpr std::int64_t kAnyMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kAnyMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMillisMax = 253'402'300'799'999;  // the end of the year 9999

// Ordered as the calls are in docs/api/contract.md.
constexpr FieldRule kRules[] = {
    // type, field, required, min, max, bytes_max, count_max
    {"SshKeyRequest", "name", false, kAnyMin, kAnyMax, 256, 0},
    {"SshKeyRequest", "public_key", true, kAnyMin, kAnyMax, 16'384, 0},
    {"CreateInstance", "name", false, kAnyMin, kAnyMax, 1'024, 0},
    {"CreateInstance", "image", true, kAnyMin, kAnyMax, 1'024, 0},
    {"CreateInstance", "command", false, kAnyMin, kAnyMax, 131'072, 0},
    {"CreateInstance", "gpu_type", false, kAnyMin, kAnyMax, 256, 0},
    {"CreateInstance", "env", false, kAnyMin, kAnyMax, 131'072, 1'000},
    {"CreateInstance", "workdir", false, kAnyMin, kAnyMax, 4'096, 0},
    {"CreateInstance", "restart", false, kAnyMin, kAnyMax, 64, 0},
    {"CreateInstance", "ssh_keys", false, kAnyMin, kAnyMax, 16'384, 64},
    {"TransferRequest", "path", true, kAnyMin, kAnyMax, 4'096, 0},
    {"TransferRequest", "size", true, 0, std::int64_t{1} << 46, 0, 0},
    {"TransferRequest", "mode", false, 0, 07777, 0, 0},
    {"TransferRequest", "mtime_ms", false, 0, kMillisMax, 0, 0},
    {"TransferRequest", "sha256", true, kAnyMin, kAnyMax, 64, 0},
    {"DirectoryRequest", "path", true, kAnyMin, kAnyMax, 4'096, 0},
    {"DirectoryRequest", "mode", false, 0, 07777, 0, 0},
    {"AccountRequest", "name", true, kAnyMin, kAnyMax, 256, 0},
    {"AccountRequest", "role", false, kAnyMin, kAnyMax, 16, 0},
    {"AccountRequest", "group", false, kAnyMin, kAnyMax, 256, 0},
    {"AccountRequest", "credit_micro", false, 0, kAnyMax, 0, 0},
    {"DisableRequest", "reason", true, kAnyMin, kAnyMax, 1'024, 0},
    {"DisableRequest", "stop_after_s", false, 0, 366 * 86'400, 0, 0},
    {"ReasonRequest", "reason", true, kAnyMin, kAnyMax, 1'024, 0},
    {"QuotaRequest", "cards_max", false, -1, 1'000'000, 0, 0},
    {"QuotaRequest", "instances_max", false, -1, 1'000'000, 0, 0},
    {"QuotaRequest", "reason", true, kAnyMin, kAnyMax, 1'024, 0},
    {"DrainRequest", "reason", true, kAnyMin, kAnyMax, 1'024, 0},
    {"DrainRequest", "until", false, kAnyMin, kAnyMax, 64, 0},
    {"ImageAliasRequest", "alias", true, kAnyMin, kAnyMax, 256, 0},
    {"ImageAliasRequest", "reference", true, kAnyMin, kAnyMax, 1'024, 0},
    {"ImageAliasRequest", "reason", false, kAnyMin, kAnyMax, 1'024, 0},
    {"CreditRequest", "amount_micro", true, kAnyMin, kAnyMax, 0, 0},
    {"CreditRequest", "reason", true, kAnyMin, kAnyMax, 1'024, 0},
    {"SetupRequest", "setup_token", true, kAnyMin, kAnyMax, 256, 0},
    {"SetupRequest", "name", true, kAnyMin, kAnyMax, 256, 0},
};
constexpr FieldRule kDefault{};

using Word = std::string_view;
constexpr Word kRoles[] = {"user", "operator"};
constexpr Word kActors[] = {"user", "platform", "operator"};
constexpr Word kCardFacts[] = {"granted", "freed",    "quarantined",
                               "cleared", "cordoned", "uncordoned"};
constexpr Word kRestarts[] = {"never", "on-loss"};
constexpr Word kStates[] = {"created",  "queued",  "starting", "running",
                            "stopping", "stopped", "failed",   "released"};
constexpr Word kStatuses[] = {"CREATED", "QUEUED", "STARTING", "RUNNING", "STOPPING", "STOPPED"};
constexpr Word kRunStates[] = {"queued", "starting", "running", "stopping", "ended"};
constexpr Word kOutcomes[] = {"completed", "failed", "rule", "cancelled", "lost", "start_failed"};
constexpr Word kStreams[] = {"stdout", "stderr", "platform"};
constexpr Word kFileTypes[] = {"file", "directory", "symlink", "other"};

struct Values {
  std::string_view type;
  std::string_view field;
  std::span<const Word> words;
};
constexpr Values kValues[] = {
    {"CreateInstance", "restart", kRestarts},
    {"Instance", "restart", kRestarts},
    {"AccountRequest", "role", kRoles},
    {"Account", "role", kRoles},
    {"Instance", "state", kStates},
    {"Instance", "status", kStatuses},
    {"Instance", "outcome", kOutcomes},
    {"Run", "state", kRunStates},
    {"Run", "outcome", kOutcomes},
    {"CardEvent", "what", kCardFacts},
    {"Event", "actor", kActors},
    {"LogEntry", "stream", kStreams},
    {"LogEnd", "outcome", kOutcomes},
    {"FileItem", "type", kFileTypes},
    {"FileList", "type", kFileTypes},
    {"BillRun", "outcome", kOutcomes},
};

}  // namespace

const FieldRule& rule_of(std::string_view type, std::string_view field) {
  for (const auto& rule : kRules)
    if (rule.type == type && rule.field == field) return rule;
  return kDefault;
}

std::span<const std::string_view> values_of(std::string_view type, std::string_view field) {
  for (const auto& row : kValues)
    if (row.type == type && row.field == field) return row.words;
  return {};
}

}  // namespace autodl::api
