// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "wire/init_messages.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <csignal>
#include <utility>

#include "wire/frames.hpp"
#include "wire/json_fields.hpp"

namespace autodl {
namespace json = boost::json;

namespace {

constexpr std::size_t kIdBytesMax = 64;
constexpr std::size_t kPathBytesMax = 4096;
constexpr std::size_t kTextBytesMax = 128 << 10;  // of one argument or variable, as Linux has it
constexpr std::size_t kCountMax = 4096;
constexpr std::size_t kKeysMax = 256;
constexpr std::size_t kKeyBytesMax = 16 << 10;
constexpr int kWindowMax = 10'000;

constexpr std::pair<std::string_view, int> kSignals[] = {
    {"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT}, {"KILL", SIGKILL}, {"USR1", SIGUSR1},
    {"USR2", SIGUSR2}, {"TERM", SIGTERM}, {"CONT", SIGCONT}, {"STOP", SIGSTOP}, {"TSTP", SIGTSTP},
};

json::object to_object(const std::map<std::string, std::string>& map) {
  json::object object;
  for (const auto& [key, value] : map) object.emplace(key, value);
  return object;
}

json::array to_array(const std::vector<AccessKey>& keys) {
  json::array array;
  for (const AccessKey& key : keys) {
    json::object item{{"public_key", key.public_key}};
    if (!key.from.empty()) item.emplace("from", json::array(key.from.begin(), key.from.end()));
    array.push_back(std::move(item));
  }
  return array;
}

void put_exit(json::object& object, const ExitStatus& status) {
  if (status.exit_code) object.emplace("exit_code", *status.exit_code);
  if (status.signal) object.emplace("signal", *status.signal);
}

ExitStatus read_exit(JsonFields& fields) {
  ExitStatus status;
  if (fields.has("exit_code") == fields.has("signal"))
    fields.fail("exactly one of 'exit_code' and 'signal' is needed");
  if (fields.has("exit_code"))
    status.exit_code = static_cast<int>(fields.integer("exit_code", 0, 255));
  if (fields.has("signal")) status.signal = static_cast<int>(fields.integer("signal", 1, 64));
  return status;
}

// A text that ends up in an argument, a variable or a path: no NUL.
void refuse_nul(JsonFields& fields, std::string_view name, std::string_view text) {
  if (text.find('\0') != std::string_view::npos)
    fields.fail(fmt::format("field '{}' holds a NUL byte", name));
}

void check_env(JsonFields& fields, const std::map<std::string, std::string>& env) {
  for (const auto& [name, value] : env) {
    refuse_nul(fields, "env", name);
    refuse_nul(fields, "env", value);
    if (name.empty() || name.find('=') != std::string::npos)
      fields.fail("field 'env' holds an empty name or one with '='");
  }
}

std::vector<AccessKey> read_keys(JsonFields& fields) {
  std::vector<AccessKey> keys;
  for (const json::value& item : fields.items("keys", kKeysMax)) {
    JsonFields inner(item, "key");
    AccessKey key{inner.text("public_key", kKeyBytesMax), inner.texts("from", kKeysMax, 256)};
    if (key.public_key.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos)
      inner.fail("field 'public_key' is more than one line");
    for (const std::string& pattern : key.from) {
      if (pattern.empty() ||
          pattern.find_first_of(std::string_view("\",\r\n\0 ", 6)) != std::string::npos)
        inner.fail("field 'from' holds a pattern with a quote, comma, space or line end");
    }
    if (auto status = inner.finish(); !status.ok()) {
      fields.fail_with(status.error());
      return {};
    }
    keys.push_back(std::move(key));
  }
  return keys;
}

WindowSize read_window(JsonFields& fields) {
  return {static_cast<int>(fields.integer_or("cols", 80, 1, kWindowMax)),
          static_cast<int>(fields.integer_or("rows", 24, 1, kWindowMax))};
}

}  // namespace

std::string init_frame(InitFrame type, std::string_view payload) {
  return encode_frame(static_cast<std::uint8_t>(type), payload);
}

std::string to_json(const ExecStart& start) {
  json::object object;
  if (!start.argv.empty())
    object.emplace("argv", json::array(start.argv.begin(), start.argv.end()));
  if (!start.shell.empty()) object.emplace("shell", start.shell);
  if (!start.cwd.empty()) object.emplace("cwd", start.cwd);
  if (!start.env.empty()) object.emplace("env", to_object(start.env));
  object.emplace("cols", start.cols);
  object.emplace("rows", start.rows);
  object.emplace("term", start.term);
  return json::serialize(object);
}

Result<ExecStart> parse_exec_start(std::string_view text) {
  JsonFields fields(text, "start");
  ExecStart start;
  start.argv = fields.texts("argv", kCountMax, kTextBytesMax);
  start.shell = fields.optional_text("shell", kTextBytesMax).value_or("");
  start.cwd = fields.optional_text("cwd", kPathBytesMax).value_or("");
  start.env = fields.text_map("env", kCountMax, kTextBytesMax);
  start.term = fields.optional_text("term", 64).value_or("xterm-256color");
  const WindowSize window = read_window(fields);
  start.cols = window.cols;
  start.rows = window.rows;
  if (start.argv.empty() == start.shell.empty())
    fields.fail("exactly one of 'argv' and 'shell' is needed");
  if (!start.argv.empty() && start.argv.front().empty())
    fields.fail("the program's name, argv[0], is empty");
  for (const std::string& argument : start.argv) refuse_nul(fields, "argv", argument);
  refuse_nul(fields, "shell", start.shell);
  refuse_nul(fields, "cwd", start.cwd);
  refuse_nul(fields, "term", start.term);
  check_env(fields, start.env);
  ADL_TRY_STATUS(fields.finish());
  return start;
}

std::string to_json(const WindowSize& size) {
  return json::serialize(json::object{{"cols", size.cols}, {"rows", size.rows}});
}

Result<WindowSize> parse_window_size(std::string_view text) {
  JsonFields fields(text, "resize");
  const WindowSize size = read_window(fields);
  ADL_TRY_STATUS(fields.finish());
  return size;
}

std::string to_json(const ExitStatus& status) {
  json::object object;
  put_exit(object, status);
  return json::serialize(object);
}

Result<ExitStatus> parse_exit_status(std::string_view text) {
  JsonFields fields(text, "exit");
  const ExitStatus status = read_exit(fields);
  ADL_TRY_STATUS(fields.finish());
  return status;
}

std::string to_json(const InitError& error) {
  return json::serialize(
      json::object{{"code", error.code}, {"message", readable_text(error.message, 8192)}});
}

Result<InitError> parse_init_error(std::string_view text) {
  JsonFields fields(text, "error");
  InitError error{fields.text("code", 64), fields.text("message", 8192)};
  ADL_TRY_STATUS(fields.finish());
  return error;
}

std::string to_json(const InitSetup& setup) {
  json::object object{{"run", setup.run.str()},       {"instance", setup.instance.str()},
                      {"name", setup.name},           {"env", to_object(setup.env)},
                      {"keys", to_array(setup.keys)}, {"host_key", setup.host_key},
                      {"workdir", setup.workdir},     {"cards", setup.cards}};
  if (setup.command) object.emplace("command", *setup.command);
  return json::serialize(object);
}

Result<InitSetup> parse_init_setup(std::string_view text) {
  JsonFields fields(text, "setup");
  InitSetup setup;
  setup.run = RunId(fields.text("run", kIdBytesMax));
  setup.instance = InstanceId(fields.text("instance", kIdBytesMax));
  setup.name = fields.text("name", 512);
  setup.env = fields.text_map("env", kCountMax, kTextBytesMax);
  setup.keys = read_keys(fields);
  setup.host_key = fields.text("host_key", kKeyBytesMax);
  setup.command = fields.optional_text("command", kTextBytesMax);
  setup.workdir = fields.optional_text("workdir", kPathBytesMax).value_or("/root");
  setup.cards = fields.flag_or("cards", false);
  if (setup.run.empty()) fields.fail("field 'run' is empty");
  if (!setup.workdir.starts_with('/')) fields.fail("field 'workdir' is not an absolute path");
  refuse_nul(fields, "workdir", setup.workdir);
  refuse_nul(fields, "command", setup.command.value_or(""));
  check_env(fields, setup.env);
  ADL_TRY_STATUS(fields.finish());
  return setup;
}

std::string to_json(const InitReady& ready) {
  return json::serialize(json::object{{"run", ready.run.str()}, {"ssh_banner", ready.ssh_banner}});
}

Result<InitReady> parse_init_ready(std::string_view text) {
  JsonFields fields(text, "ready");
  InitReady ready{RunId(fields.text("run", kIdBytesMax)), fields.text("ssh_banner", 256)};
  ADL_TRY_STATUS(fields.finish());
  return ready;
}

std::string to_json(const InitStop& stop) {
  return json::serialize(json::object{{"run", stop.run.str()}, {"grace_ms", stop.grace_ms}});
}

Result<InitStop> parse_init_stop(std::string_view text) {
  JsonFields fields(text, "stop");
  InitStop stop{RunId(fields.text("run", kIdBytesMax)),
                fields.integer_or("grace_ms", 10'000, 0, kGraceMsMax)};
  ADL_TRY_STATUS(fields.finish());
  return stop;
}

std::string to_json(const InitReport& report) {
  return json::serialize(
      json::object{{"level", report.level}, {"message", readable_text(report.message, 8192)}});
}

Result<InitReport> parse_init_report(std::string_view text) {
  JsonFields fields(text, "report");
  InitReport report{fields.text("level", 16), fields.text("message", 8192)};
  ADL_TRY_STATUS(fields.finish());
  return report;
}

std::string to_json(const ExitRecord& record) {
  json::object object{{"run", record.run.str()}};
  put_exit(object, record.exit);
  if (record.shutdown) object.emplace("shutdown", true);
  return json::serialize(object);
}

Result<ExitRecord> parse_exit_record(std::string_view text) {
  if (text.size() > kExitRecordBytesMax)
    return Error(ErrorKind::kInvalid, "bad_message", "exit record: over 4 KiB");
  JsonFields fields(text, "exit record");
  ExitRecord record;
  record.run = RunId(fields.text("run", kIdBytesMax));
  record.exit = read_exit(fields);
  record.shutdown = fields.flag_or("shutdown", false);
  ADL_TRY_STATUS(fields.finish());
  return record;
}

std::string signal_to_json(int signal) {
  for (const auto& [name, number] : kSignals) {
    if (number == signal) return json::serialize(json::object{{"name", name}});
  }
  return json::serialize(json::object{{"name", std::to_string(signal)}});
}

Result<int> parse_signal(std::string_view text) {
  JsonFields fields(text, "signal");
  std::string name = fields.text("name", 16);
  ADL_TRY_STATUS(fields.finish());
  if (name.starts_with("SIG")) name.erase(0, 3);
  for (const auto& [known, number] : kSignals) {
    if (name == known) return number;
  }
  return Error(ErrorKind::kInvalid, "bad_message",
               "signal: '" + name + "' is none of HUP INT QUIT KILL USR1 USR2 TERM CONT STOP TSTP");
}

std::string run_to_json(const RunId& run) {
  return json::serialize(json::object{{"run", run.str()}});
}

Result<RunId> parse_run(std::string_view text) {
  JsonFields fields(text, "run");
  RunId run(fields.text("run", kIdBytesMax));
  ADL_TRY_STATUS(fields.finish());
  return run;
}

std::string keys_to_json(const std::vector<AccessKey>& keys) {
  return json::serialize(json::object{{"keys", to_array(keys)}});
}

Result<std::vector<AccessKey>> parse_keys(std::string_view text) {
  JsonFields fields(text, "keys");
  std::vector<AccessKey> keys = read_keys(fields);
  ADL_TRY_STATUS(fields.finish());
  return keys;
}

Status check_samples(std::string_view text) {
  if (text.size() > kSamplesBytesMax)
    return Error(ErrorKind::kInvalid, "bad_message", "samples: over 64 KiB");
  JsonFields fields(text, "samples");
  if (!fields.has("gpus")) fields.fail("field 'gpus' is missing");
  static_cast<void>(fields.items("gpus", 256));
  static_cast<void>(fields.integer_or("at_ms", 0, 0, INT64_MAX));
  return fields.finish();
}

}  // namespace autodl
