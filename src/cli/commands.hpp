// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The commands of the CLI. Each registers itself on the CLI11 application; its callback sets
// context.run, which main calls after parsing.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/result.hpp"
#include "cli/api.hpp"
#include "cli/config.hpp"
#include "cli/output.hpp"

namespace autodl::cli {

struct Context {
  Credentials flags;
  bool endpoint_given = false;
  Format format = Format::kTable;
  Environment environment;
  SystemClock clock;
  SystemRandom random;
  std::function<Result<int>()> run;  // the chosen command; its value is the exit code

  // An Api with the caller's keys; kDenied "not_signed_in" where there are none.
  Result<Api> api();
};

void add_account_commands(CLI::App& app, Context& context);   // login, balance, gpus, images
void add_instance_commands(CLI::App& app, Context& context);  // create … bill
void add_remote_commands(CLI::App& app, Context& context);    // ssh, exec, cp, run

void add_admin_commands(CLI::App& app, Context& context);  // for operators

// Shared by the groups.
void print_new_account(Context& context, const json::value& answer);
std::string instance_target(const std::string& instance, std::string_view rest = "");
Result<json::object> get_instance(Api& api, const std::string& instance);
std::string text_of(const json::object& object, std::string_view key);
std::int64_t number_of(const json::object& object, std::string_view key);
Result<json::object> create_instance(Api& api, const json::object& request);
// Waits until the instance's status word or state is one of the two; shows progress on a terminal.
Result<json::object> wait_for(Api& api, const std::string& instance, std::string_view first,
                              std::string_view second);
// The instance once its run is up: waits while it is queued or starting. kConflict "not_running"
// where it was not started or has ended.
Result<json::object> once_running(Api& api, const std::string& instance);

struct CreateOptions {
  std::string name, image, gpu, workdir = "/root", restart = "never";
  int gpu_count = 1;
  std::int64_t disk_gib = 50;
  std::int64_t max_runtime_s = 0;
  std::vector<std::string> env, ssh_keys;
  bool allow_cpu_image = false;
};
void add_create_options(CLI::App& command, CreateOptions& options);
Result<json::object> create_request(const CreateOptions& options,
                                    const std::vector<std::string>& command);
// What one types in a shell for these words.
std::string shell_quote(const std::vector<std::string>& words);
// Shows the substitutions of an instance's image, once, on stderr.
void show_substitution(const json::object& instance);
// Follows the log of the current run to its end; its entries go to stdout and stderr.
Status follow_logs(Api& api, const std::string& instance);

}  // namespace autodl::cli
