// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The types of the REST API as values (docs/api/contract.md says what they mean). The JSON has the
// members' names. Times are RFC 3339 texts, money micro-units, sizes bytes, durations seconds
// unless the name says otherwise.
#pragma once

#include <boost/describe.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace autodl::api {

// Declares the members that are read and written, and the name under which rules stand.
#define ADL_API_TYPE(Type, ...)                    \
  static constexpr std::string_view kName = #Type; \
  bool operator==(const Type&) const = default;    \
  BOOST_DESCRIBE_CLASS(Type, (), (__VA_ARGS__), (), ())

// ---- requests ----

struct SshKeyRequest {
  std::string name;
  std::string public_key;
  ADL_API_TYPE(SshKeyRequest, name, public_key)
};

struct CreateInstance {
  std::optional<std::string> name;
  std::string image;
  std::optional<std::string> command;
  std::optional<std::string> gpu_type;
  std::int64_t gpu_count = 1;
  std::int64_t disk_bytes = std::int64_t{50} << 30;
  std::optional<std::int64_t> max_runtime_s;
  std::map<std::string, std::string> env;
  std::string workdir = "/root";
  std::string restart = "never";
  std::vector<std::string> ssh_keys;
  bool allow_cpu_image = false;
  ADL_API_TYPE(CreateInstance, name, image, command, gpu_type, gpu_count, disk_bytes, max_runtime_s,
               env, workdir, restart, ssh_keys, allow_cpu_image)
};

struct NoMembers {  // the body "{}" of start, stop, release, complete
  ADL_API_TYPE(NoMembers)
};

struct TransferRequest {
  std::string path;
  std::int64_t size = 0;
  std::int64_t mode = 0644;
  std::optional<std::int64_t> mtime_ms;
  std::string sha256;
  ADL_API_TYPE(TransferRequest, path, size, mode, mtime_ms, sha256)
};

struct DirectoryRequest {
  std::string path;
  std::int64_t mode = 0755;
  ADL_API_TYPE(DirectoryRequest, path, mode)
};

struct AccountRequest {
  std::string name;
  std::string role = "user";
  std::string group;  // empty: none; one that does not exist is made
  std::int64_t credit_micro = 0;
  ADL_API_TYPE(AccountRequest, name, role, group, credit_micro)
};

struct DisableRequest {
  std::string reason;
  std::int64_t stop_after_s = 3'600;  // what runs is told, and stopped then; 0: at once
  ADL_API_TYPE(DisableRequest, reason, stop_after_s)
};

struct ReasonRequest {
  std::string reason;
  ADL_API_TYPE(ReasonRequest, reason)
};

// A member that is missing stays as it is; -1 takes the limit away.
struct QuotaRequest {
  std::optional<std::int64_t> cards_max;
  std::optional<std::int64_t> instances_max;
  std::string reason;
  ADL_API_TYPE(QuotaRequest, cards_max, instances_max, reason)
};

struct DrainRequest {
  std::string reason;
  std::optional<std::string> until;
  ADL_API_TYPE(DrainRequest, reason, until)
};

struct ImageAliasRequest {
  std::string alias;
  std::string reference;  // empty: takes the alias away
  std::string reason;
  ADL_API_TYPE(ImageAliasRequest, alias, reference, reason)
};

struct CreditRequest {
  std::int64_t amount_micro = 0;
  std::string reason;
  ADL_API_TYPE(CreditRequest, amount_micro, reason)
};

struct SetupRequest {
  std::string setup_token;
  std::string name;
  ADL_API_TYPE(SetupRequest, setup_token, name)
};

// ---- answers ----

struct Version {
  std::string name = "autodl";
  std::string version;
  std::string api = "v1";
  bool simulated_gpus = false;
  ADL_API_TYPE(Version, name, version, api, simulated_gpus)
};

struct GpuType {
  std::string name;
  std::int64_t memory_bytes = 0;
  std::int64_t total = 0;
  std::int64_t free = 0;
  std::int64_t price_micro_per_hour = 0;
  std::string currency;
  bool simulated = false;
  ADL_API_TYPE(GpuType, name, memory_bytes, total, free, price_micro_per_hour, currency, simulated)
};

struct Image {
  std::string name;
  std::vector<std::string> aliases;
  std::string description;
  std::optional<std::string> digest;
  std::optional<std::int64_t> size_bytes;
  bool present = false;
  ADL_API_TYPE(Image, name, aliases, description, digest, size_bytes, present)
};

struct Account {
  std::string id;
  std::string name;
  std::string role;
  std::int64_t balance_micro = 0;
  std::int64_t held_micro = 0;
  std::int64_t available_micro = 0;
  std::string currency;
  std::optional<std::string> group;
  bool disabled = false;
  std::optional<std::string> stop_runs_at;  // of a disabled one
  std::int64_t cards_held = 0;
  std::optional<std::int64_t> cards_max;
  std::int64_t instances = 0;
  std::optional<std::int64_t> instances_max;
  ADL_API_TYPE(Account, id, name, role, balance_micro, held_micro, available_micro, currency, group,
               disabled, stop_runs_at, cards_held, cards_max, instances, instances_max)
};

struct GroupQuota {
  std::string id;
  std::string name;
  std::int64_t members = 0;
  std::int64_t cards_held = 0;
  std::optional<std::int64_t> cards_max;
  std::int64_t instances = 0;
  std::optional<std::int64_t> instances_max;
  ADL_API_TYPE(GroupQuota, id, name, members, cards_held, cards_max, instances, instances_max)
};

struct AuditEntry {
  std::int64_t seq = 0;
  std::string at;
  std::optional<std::string> actor;
  std::string actor_name;
  std::string action;
  std::string target;
  boost::json::object before;
  boost::json::object after;
  std::string reason;
  std::string request_id;
  ADL_API_TYPE(AuditEntry, seq, at, actor, actor_name, action, target, before, after, reason,
               request_id)
};

struct CardEvent {
  std::int64_t seq = 0;
  std::string at;
  std::string what;
  std::string node;
  std::string type;
  std::optional<std::string> account;
  std::optional<std::string> instance;
  std::optional<std::string> run;
  std::string detail;
  ADL_API_TYPE(CardEvent, seq, at, what, node, type, account, instance, run, detail)
};

struct Backup {
  std::string id;
  std::int64_t size_bytes = 0;
  ADL_API_TYPE(Backup, id, size_bytes)
};

struct ImageAlias {
  std::string alias;
  std::string reference;
  ADL_API_TYPE(ImageAlias, alias, reference)
};

struct Balance {
  std::int64_t balance_micro = 0;
  std::int64_t held_micro = 0;
  std::int64_t available_micro = 0;
  std::string currency;
  ADL_API_TYPE(Balance, balance_micro, held_micro, available_micro, currency)
};

struct SshKey {
  std::string id;
  std::string name;
  std::string public_key;
  ADL_API_TYPE(SshKey, id, name, public_key)
};

struct SshEndpoint {
  std::string host;
  std::int64_t port = 0;
  std::string user = "root";
  std::string host_key;
  ADL_API_TYPE(SshEndpoint, host, port, user, host_key)
};

struct QueuePlace {
  std::int64_t position = 0;
  std::string reason;
  ADL_API_TYPE(QueuePlace, position, reason)
};

struct Progress {
  std::string phase;
  std::optional<std::int64_t> percent;
  ADL_API_TYPE(Progress, phase, percent)
};

struct NextRule {
  std::string kind;
  std::int64_t in_s = 0;
  ADL_API_TYPE(NextRule, kind, in_s)
};

struct Instance {
  std::string id;
  std::string name;
  std::string state;
  std::string status;
  bool reachable = true;
  std::optional<std::string> outcome;
  std::optional<std::int64_t> exit_code;
  std::optional<std::int64_t> signal;
  std::string reason;
  std::string remedy;
  std::string image;
  std::string image_resolved;
  std::optional<std::string> image_digest;
  bool substituted = false;
  std::optional<std::string> gpu_type;
  std::int64_t gpu_count = 0;
  std::int64_t disk_bytes = 0;
  std::optional<std::string> command;
  std::map<std::string, std::string> env;
  std::string workdir;
  std::string restart;
  std::optional<std::int64_t> max_runtime_s;
  std::optional<SshEndpoint> ssh;
  std::optional<QueuePlace> queue;
  std::optional<Progress> progress;
  std::optional<std::string> run;
  std::int64_t runtime_s = 0;
  std::int64_t cost_micro = 0;
  std::int64_t price_micro_per_hour = 0;
  std::string currency;
  std::string created_at;
  std::optional<std::string> started_at;
  std::optional<std::string> ended_at;
  std::optional<NextRule> next_rule;
  std::optional<std::string> notice;
  ADL_API_TYPE(Instance, id, name, state, status, reachable, outcome, exit_code, signal, reason,
               remedy, image, image_resolved, image_digest, substituted, gpu_type, gpu_count,
               disk_bytes, command, env, workdir, restart, max_runtime_s, ssh, queue, progress, run,
               runtime_s, cost_micro, price_micro_per_hour, currency, created_at, started_at,
               ended_at, next_rule, notice)
};

struct Run {
  std::string id;
  std::int64_t attempt = 1;
  std::string state;
  std::optional<std::string> outcome;
  std::optional<std::int64_t> exit_code;
  std::optional<std::int64_t> signal;
  std::string reason;
  std::optional<std::string> gpu_type;
  std::vector<std::string> cards;
  std::int64_t price_micro_per_hour = 0;
  std::string requested_at;
  std::optional<std::string> started_at;
  std::optional<std::string> ended_at;
  std::int64_t runtime_s = 0;
  std::int64_t cost_micro = 0;
  ADL_API_TYPE(Run, id, attempt, state, outcome, exit_code, signal, reason, gpu_type, cards,
               price_micro_per_hour, requested_at, started_at, ended_at, runtime_s, cost_micro)
};

struct Event {
  std::int64_t seq = 0;
  std::string at;
  std::string type;
  std::optional<std::string> instance;
  std::optional<std::string> run;
  std::string actor;
  boost::json::object data;
  std::string message;
  std::string request_id;
  ADL_API_TYPE(Event, seq, at, type, instance, run, actor, data, message, request_id)
};

struct LogEntry {
  std::string time;
  std::string stream;
  std::string text;
  bool partial = false;
  ADL_API_TYPE(LogEntry, time, stream, text, partial)
};

struct LogPage {
  std::string run;
  std::int64_t offset = 0;
  std::int64_t next = 0;
  bool end = false;
  std::vector<LogEntry> entries;
  ADL_API_TYPE(LogPage, run, offset, next, end, entries)
};

struct LogEnd {
  std::optional<std::string> outcome;
  std::optional<std::int64_t> exit_code;
  ADL_API_TYPE(LogEnd, outcome, exit_code)
};

struct Transfer {
  std::string ticket;
  std::int64_t part_bytes = 0;
  std::int64_t received_bytes = 0;
  ADL_API_TYPE(Transfer, ticket, part_bytes, received_bytes)
};

struct TransferProgress {
  std::int64_t received_bytes = 0;
  ADL_API_TYPE(TransferProgress, received_bytes)
};

struct TransferResult {
  std::string path;
  std::int64_t size = 0;
  std::string sha256;
  ADL_API_TYPE(TransferResult, path, size, sha256)
};

struct FileItem {
  std::string path;
  std::string type;
  std::int64_t size = 0;
  std::int64_t mode = 0;
  std::int64_t mtime_ms = 0;
  std::optional<std::string> target;
  ADL_API_TYPE(FileItem, path, type, size, mode, mtime_ms, target)
};

struct FileList {
  std::string path;
  std::string type;
  std::vector<FileItem> items;
  std::optional<std::string> next;
  ADL_API_TYPE(FileList, path, type, items, next)
};

struct GpuSample {
  std::int64_t index = 0;
  std::string uuid;
  std::string model;
  std::optional<std::int64_t> utilization_percent;
  std::optional<std::int64_t> memory_used_mib;
  std::optional<std::int64_t> memory_total_mib;
  std::optional<std::int64_t> temperature_c;
  ADL_API_TYPE(GpuSample, index, uuid, model, utilization_percent, memory_used_mib,
               memory_total_mib, temperature_c)
};

struct Monitor {
  std::vector<GpuSample> gpus;
  std::optional<std::int64_t> cpu_percent;
  std::optional<std::int64_t> memory_used_bytes;
  std::optional<std::int64_t> memory_limit_bytes;
  std::optional<std::int64_t> disk_used_bytes;
  std::int64_t disk_bytes = 0;
  ADL_API_TYPE(Monitor, gpus, cpu_percent, memory_used_bytes, memory_limit_bytes, disk_used_bytes,
               disk_bytes)
};

struct BillInterval {
  std::string from;
  std::optional<std::string> to;
  std::int64_t ms = 0;
  bool billed = true;
  std::string reason;
  ADL_API_TYPE(BillInterval, from, to, ms, billed, reason)
};

struct BillRun {
  std::string run;
  std::int64_t attempt = 1;
  std::optional<std::string> gpu_type;
  std::int64_t cards = 0;
  std::int64_t price_micro_per_card_hour = 0;
  std::vector<BillInterval> intervals;
  std::int64_t ms = 0;
  std::int64_t seconds = 0;
  std::int64_t amount_micro = 0;
  std::int64_t settled_micro = 0;
  std::optional<std::string> outcome;
  ADL_API_TYPE(BillRun, run, attempt, gpu_type, cards, price_micro_per_card_hour, intervals, ms,
               seconds, amount_micro, settled_micro, outcome)
};

struct BillStorage {
  std::int64_t amount_micro = 0;
  ADL_API_TYPE(BillStorage, amount_micro)
};

struct BillEntry {
  std::int64_t seq = 0;
  std::string at;
  std::string kind;
  std::int64_t amount_micro = 0;
  std::optional<std::string> run;
  std::string reason;
  ADL_API_TYPE(BillEntry, seq, at, kind, amount_micro, run, reason)
};

struct Bill {
  std::string instance;
  std::string name;
  std::string currency;
  std::int64_t total_micro = 0;
  std::int64_t settled_micro = 0;
  std::vector<BillRun> runs;
  BillStorage storage;
  std::vector<BillEntry> entries;
  ADL_API_TYPE(Bill, instance, name, currency, total_micro, settled_micro, runs, storage, entries)
};

struct AccountBill {
  std::string currency;
  std::int64_t total_micro = 0;
  std::vector<Bill> items;
  ADL_API_TYPE(AccountBill, currency, total_micro, items)
};

struct NewAccount {
  Account account;
  std::string token;
  std::string access_key;
  std::string secret_key;
  ADL_API_TYPE(NewAccount, account, token, access_key, secret_key)
};

struct Node {
  std::string id;
  bool reachable = false;
  std::string boot_id;
  std::string driver_version;
  bool simulated_cards = false;
  std::int64_t cards = 0;
  std::vector<std::string> unknown_instances;
  bool draining = false;
  std::optional<std::string> drain_until;
  std::string drain_reason;
  std::int64_t running = 0;
  std::int64_t cordoned = 0;
  ADL_API_TYPE(Node, id, reachable, boot_id, driver_version, simulated_cards, cards,
               unknown_instances, draining, drain_until, drain_reason, running, cordoned)
};

struct Card {
  std::string id;
  std::string node;
  std::string type;
  std::string model;
  std::int64_t memory_bytes = 0;
  std::string health;
  std::string reason;
  std::optional<std::string> instance;
  std::optional<std::int64_t> utilization_percent;
  std::optional<std::int64_t> temperature_c;
  bool cordoned = false;
  std::string cordon_reason;
  ADL_API_TYPE(Card, id, node, type, model, memory_bytes, health, reason, instance,
               utilization_percent, temperature_c, cordoned, cordon_reason)
};

}  // namespace autodl::api
