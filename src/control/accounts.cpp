// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Accounts, sign-in, idempotency and account keys.
#include <fmt/format.h>

#include <algorithm>

#include "control/detail/core_state.hpp"

namespace autodl {
namespace {

constexpr auto kNonceLife = std::chrono::minutes{15};  // twice the allowed skew, and more
constexpr auto kAnswerLife = std::chrono::hours{24};
constexpr std::size_t kSshKeysMax = 100;

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return text;
}

}  // namespace

Error no_account() {
  return Error(ErrorKind::kNotFound, "no_such_account", "there is no such account",
               "see `autodl admin user list`");
}

Error disabled_account() {
  return Error(ErrorKind::kDenied, "account_disabled", "the account is disabled",
               "ask the operator");
}

Status check_reason(std::string_view reason) {
  if (utf8_length(reason) && reason.size() <= 1'024 && !has_control_character(reason)) return {};
  return Error(ErrorKind::kInvalid, "bad_reason", "reason is not one line of at most 1024 bytes");
}

AccountView ControlCore::State::view(const AccountRow& account) const {
  AccountView out;
  out.row = account;
  out.held_micro = ledger.held(account.id);
  out.available_micro = available(account.id);
  out.cash_micro = ledger.available(account.id);
  out.balance_micro = out.held_micro + out.available_micro;
  out.currency = config.currency;
  if (const auto group = groups.find(account.group); group != groups.end()) {
    out.group = group->second.name;
    if (group->second.budget_micro) out.room_micro = room(account.id);
  }
  out.cards_held = cards_held(account.id);
  out.instances = instances_of(account.id);
  return out;
}

Result<NewAccount> ControlCore::State::create_account(const RequestContext& context,
                                                      std::string_view name, Role role,
                                                      const AccountStart& start) {
  ADL_TRY_STATUS(validate_account_name(name));
  if (is_ulid(name)) {
    return Error(ErrorKind::kInvalid, "bad_name", "a name may not look like an id");
  }
  if (!start.group.empty()) ADL_TRY_STATUS(validate_account_name(start.group));
  if (start.credit_micro < 0) {
    return Error(ErrorKind::kInvalid, "bad_amount", "credit_micro is negative");
  }
  for (const auto& [id, row] : accounts) {
    if (row.name == name) {
      return Error(ErrorKind::kConflict, "name_taken",
                   fmt::format("there is an account '{}' already", name));
    }
  }
  AccountRow row;
  row.id = AccountId(ids.next());
  row.name = std::string(name);
  row.role = role;
  row.created_at = now();
  if (start.credit_micro > 0) {
    ADL_TRY(entry, ledger.credit(row.id, start.credit_micro, now(), "at the account's beginning"));
    record(entry);
  }
  if (!start.group.empty()) {
    const auto group = group_named(start.group);
    row.group = group.ok() ? *group : make_group(context, start.group);
  }
  NewAccount out;
  out.token = "adl_" + random.hex(32);
  out.access_key = "AK" + upper(random.hex(10));
  out.secret_key = "adl_sk_" + random.hex(32);
  accounts[row.id] = row;
  dirty_accounts.insert(row.id);
  tokens[hash_of_token(out.token)] = row.id;
  batch.tokens.push_back({hash_of_token(out.token), row.id, now()});
  keys[out.access_key] = {row.id, out.secret_key};
  batch.access_keys.push_back(
      {out.access_key, row.id, secrets.seal(out.secret_key, out.access_key, random), now()});
  out.account = view(row);
  audit(context,
        {"user.add", row.name, "{}",
         json_object({{"id", row.id.str()}, {"role", to_string(role)}, {"group", start.group}}),
         start.credit_micro > 0 ? fmt::format("with {} micro-units", start.credit_micro) : ""});
  return out;
}

void ControlCore::State::forget_old() {
  const UtcTime nonces_before = now() - kNonceLife;
  const UtcTime answers_before = now() - kAnswerLife;
  const auto old_nonces =
      std::erase_if(nonces, [&](const auto& item) { return item.second < nonces_before; });
  const auto old_answers =
      std::erase_if(answers, [&](const auto& item) { return item.second.at < answers_before; });
  if (old_nonces > 0) batch.forget_nonces_before = nonces_before;
  if (old_answers > 0) batch.forget_idempotency_before = answers_before;
}

bool ControlCore::has_operator() const {
  return std::any_of(state_->accounts.begin(), state_->accounts.end(),
                     [](const auto& item) { return item.second.role == Role::kOperator; });
}

Result<NewAccount> ControlCore::create_account(const RequestContext& context, std::string_view name,
                                               Role role, const AccountStart& start) {
  return state_->create_account(context, name, role, start);
}

Result<AccountId> ControlCore::account_of_token(std::string_view token) const {
  const auto found = state_->tokens.find(hash_of_token(token));
  if (found == state_->tokens.end()) {
    return Error(ErrorKind::kDenied, "bad_token", "the token is not valid",
                 "sign in again with `autodl login`");
  }
  if (state_->accounts.at(found->second).disabled) return disabled_account();
  return found->second;
}

Result<SigningKey> ControlCore::signing_key(std::string_view key_id) const {
  const auto found = state_->keys.find(std::string(key_id));
  if (found == state_->keys.end()) {
    return Error(ErrorKind::kDenied, "unknown_key", "there is no such access key",
                 "check access_key, or sign in again with `autodl login`");
  }
  if (state_->accounts.at(found->second.account).disabled) return disabled_account();
  return found->second;
}

Status ControlCore::use_nonce(std::string_view key_id, std::string_view nonce) {
  const auto made =
      state_->nonces.emplace(std::pair(std::string(key_id), std::string(nonce)), state_->now());
  if (!made.second) {
    return Error(ErrorKind::kDenied, "replayed", "this nonce was used before",
                 "sign each request with a new nonce");
  }
  state_->batch.nonces.push_back({std::string(key_id), std::string(nonce), state_->now()});
  return {};
}

Result<AccountView> ControlCore::account(const AccountId& account) const {
  const auto found = state_->accounts.find(account);
  if (found == state_->accounts.end()) return no_account();
  return state_->view(found->second);
}

std::vector<AccountView> ControlCore::accounts() const {
  std::vector<AccountView> out;
  for (const auto& [id, row] : state_->accounts) out.push_back(state_->view(row));
  return out;
}

Result<AccountView> ControlCore::credit(const RequestContext& context, const AccountId& account,
                                        std::int64_t amount_micro, std::string_view reason) {
  const auto found = state_->accounts.find(account);
  if (found == state_->accounts.end()) return no_account();
  ADL_TRY_STATUS(check_reason(reason));
  const std::int64_t before = state_->view(found->second).balance_micro;
  ADL_TRY(entry, state_->ledger.credit(account, amount_micro, state_->now(), reason));
  state_->record(entry);
  const AccountView view = state_->view(found->second);
  state_->audit(
      context, {"user.credit", found->second.name, fmt::format(R"({{"balance_micro":{}}})", before),
                fmt::format(R"({{"balance_micro":{}}})", view.balance_micro), std::string(reason)});
  return view;
}

Result<std::optional<IdempotencyRow>> ControlCore::find_answer(
    const AccountId& account, std::string_view key, std::string_view request_hash) const {
  const auto found = state_->answers.find({account, std::string(key)});
  if (found == state_->answers.end() || found->second.at < state_->now() - kAnswerLife) {
    return std::optional<IdempotencyRow>();
  }
  if (found->second.request_hash != request_hash) {
    return Error(ErrorKind::kConflict, "idempotency_mismatch",
                 "this Idempotency-Key was used with another request",
                 "use a new key for each request");
  }
  return std::optional<IdempotencyRow>(found->second);
}

void ControlCore::remember_answer(const AccountId& account, std::string_view key,
                                  std::string_view request_hash, std::int64_t status,
                                  std::string body) {
  IdempotencyRow row{account, std::string(key), std::string(request_hash),
                     status,  std::move(body),  state_->now()};
  state_->batch.idempotency.push_back(row);
  state_->answers[{account, row.key}] = std::move(row);
}

Result<SshKeyRow> ControlCore::add_ssh_key(const RequestContext&, const AccountId& account,
                                           std::string_view name, std::string_view public_key) {
  while (!public_key.empty() && (public_key.back() == '\n' || public_key.back() == ' ')) {
    public_key.remove_suffix(1);
  }
  ADL_TRY_STATUS(validate_name(name));
  ADL_TRY_STATUS(validate_ssh_key(public_key));
  const auto mine = ssh_keys(account);
  if (mine.size() >= kSshKeysMax) {
    return Error(ErrorKind::kInvalid, "bad_ssh_key",
                 fmt::format("an account has at most {} ssh keys", kSshKeysMax));
  }
  for (const auto& row : mine) {
    if (row.public_key == public_key) return row;  // asked twice: there already
  }
  SshKeyRow row{state_->ids.next(),      account,       std::string(name),
                std::string(public_key), state_->now(), false};
  state_->ssh_keys[row.id] = row;
  state_->batch.ssh_keys.push_back(row);
  state_->touch_desired();
  return row;
}

std::vector<SshKeyRow> ControlCore::ssh_keys(const AccountId& account) const {
  std::vector<SshKeyRow> out;
  for (const auto& [id, row] : state_->ssh_keys) {
    if (row.account == account && !row.removed) out.push_back(row);
  }
  return out;
}

Status ControlCore::remove_ssh_key(const RequestContext&, const AccountId& account,
                                   std::string_view id) {
  const auto found = state_->ssh_keys.find(std::string(id));
  if (found == state_->ssh_keys.end() || found->second.account != account ||
      found->second.removed) {
    return Error(ErrorKind::kNotFound, "no_such_key", "there is no such ssh key");
  }
  found->second.removed = true;
  state_->batch.ssh_keys.push_back(found->second);
  state_->touch_desired();
  return {};
}

}  // namespace autodl
