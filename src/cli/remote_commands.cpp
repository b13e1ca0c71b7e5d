// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "cli/commands.hpp"
#include "cli/copy.hpp"
#include "cli/remote.hpp"

namespace autodl::cli {

namespace {

CopyProgress show_copy(Progress& progress) {
  return [&progress](std::string_view name, std::int64_t done, std::int64_t size) {
    progress.show(fmt::format("{} {} of {}", name, bytes(done), bytes(size)));
  };
}

// "NAME:/path" is remote, all else local; a path that holds ':' can be written as ./a:b.
bool split_remote(const std::string& text, std::string& instance, std::string& path) {
  const auto colon = text.find(':');
  if (colon == std::string::npos || colon == 0 || text.find('/') < colon) return false;
  instance = text.substr(0, colon);
  path = text.substr(colon + 1);
  return true;
}

Result<int> copy(Context& context, const std::vector<std::string>& paths) {
  ADL_TRY(api, context.api());
  if (paths.size() < 2)
    return Error(ErrorKind::kInvalid, "usage", "cp takes a source and a target",
                 "autodl cp FILE… NAME:/root/ or autodl cp NAME:/root/output ./results");
  Progress progress;
  std::string instance, remote;
  const std::vector<std::string> sources(paths.begin(), paths.end() - 1);
  if (split_remote(paths.back(), instance, remote)) {
    ADL_TRY_STATUS(upload(api, instance, sources, remote, show_copy(progress)));
    return 0;
  }
  for (const auto& source : sources) {
    if (!split_remote(source, instance, remote))
      return Error(ErrorKind::kInvalid, "usage", "neither side names an instance",
                   "write the remote side as NAME:/path");
    ADL_TRY_STATUS(download(api, instance, remote, paths.back(), show_copy(progress)));
  }
  return 0;
}

struct RunOptions {
  CreateOptions create;
  std::vector<std::string> command;
  std::string folder = ".";
  std::string output = "output";
  bool keep = false;
};

// How a run's end becomes an exit code: its own, 128 + signal, or 1 with the reason.
int exit_code_of_run(const json::object& instance) {
  const auto* code = instance.if_contains("exit_code");
  if (code != nullptr && code->is_int64()) return static_cast<int>(code->get_int64());
  if (const auto killed = number_of(instance, "signal"); killed > 0)
    return 128 + static_cast<int>(killed);
  return 1;
}

Result<int> run_job(Api& api, const RunOptions& options, const std::string& id) {
  Progress progress;
  ADL_TRY_STATUS(upload(api, id, {options.folder}, "/root", show_copy(progress)));
  progress.clear();
  ADL_TRY(started, api.post(instance_target(id, "/start"), json::object{}));
  ADL_TRY(running, wait_for(api, id, "RUNNING", "STOPPED"));
  ADL_TRY_STATUS(follow_logs(api, id));
  ADL_TRY(ended, wait_for(api, id, "STOPPED", "STOPPED"));
  const auto outcome = text_of(ended, "outcome");
  if (outcome != "completed")
    fmt::print(stderr, "run {}: {}\n", clean(outcome), clean(text_of(ended, "reason")));
  const auto remote = options.output.starts_with('/') ? options.output : "/root/" + options.output;
  const auto name = remote.substr(remote.rfind('/') + 1);
  auto fetched = download(api, id, remote, name, show_copy(progress));
  if (!fetched.ok() && fetched.error().kind() != ErrorKind::kNotFound) return fetched.error();
  return exit_code_of_run(ended);
}

// ^C ends this program, not the run: it says how to go on. Written before, so that the handler
// only writes bytes.
std::string interrupted_note;

void on_interrupt(int) {
  static_cast<void>(::write(STDERR_FILENO, interrupted_note.data(), interrupted_note.size()));
  ::_exit(130);
}

Result<int> run(Context& context, const RunOptions& options) {
  ADL_TRY(api, context.api());
  if (!std::filesystem::is_directory(options.folder))
    return Error(ErrorKind::kInvalid, "no_such_file",
                 fmt::format("'{}' is not a folder", options.folder), "nothing was sent");
  ADL_TRY(request, create_request(options.create, options.command));
  ADL_TRY(instance, create_instance(api, request));
  show_substitution(instance);
  const auto id = text_of(instance, "id");
  const auto shown = clean(text_of(instance, "name"));
  interrupted_note = fmt::format(
      "\n{0} goes on. Follow it: autodl logs -f {0}   End it: autodl release {0}\n", shown);
  std::signal(SIGINT, on_interrupt);
  auto code = run_job(api, options, id);
  if (options.keep) {
    fmt::print(stderr, "kept: {} (release it with: autodl release {})\n", text_of(instance, "name"),
               text_of(instance, "name"));
    return code;
  }
  const auto released = api.post(instance_target(id, "/release"), json::object{});
  if (!released.ok())
    fmt::print(stderr, "release {}: {}\n", text_of(instance, "name"), released.error().message());
  return code;
}

}  // namespace

void add_remote_commands(CLI::App& app, Context& context) {
  auto* ssh =
      app.add_subcommand("ssh", "SSH into an instance; what follows -- is the remote command");
  auto instance = std::make_shared<std::string>();
  auto identity = std::make_shared<std::string>();
  auto words = std::make_shared<std::vector<std::string>>();
  ssh->add_option("instance", *instance, "name or id")->required();
  ssh->add_option("-i,--identity", *identity, "private key file");
  ssh->add_option("command", *words, "after --: a command");
  ssh->callback([&context, instance, identity, words] {
    context.run = [&context, instance, identity, words]() -> Result<int> {
      ADL_TRY(api, context.api());
      ADL_TRY(row, once_running(api, *instance));
      return ssh_remote(row, *identity, *words);
    };
  });

  auto* exec = app.add_subcommand("exec", "run a command inside; its exit code is this program's");
  auto options = std::make_shared<ExecOptions>();
  auto target = std::make_shared<std::string>();
  auto argv = std::make_shared<std::vector<std::string>>();
  exec->add_option("instance", *target, "name or id")->required();
  exec->add_flag("-t,--tty", options->pty, "with a terminal");
  exec->add_option("--workdir", options->cwd, "where it starts");
  exec->add_option("command", *argv, "after --: the command")->required();
  exec->callback([&context, options, target, argv] {
    context.run = [&context, options, target, argv]() -> Result<int> {
      ADL_TRY(api, context.api());
      ADL_TRY(row, once_running(api, *target));
      return exec_remote(api, text_of(row, "id"), *argv, *options);
    };
  });

  auto* cp = app.add_subcommand(
      "cp", "copy files: autodl cp FILE… NAME:/root/, autodl cp NAME:/root/out ./results");
  auto paths = std::make_shared<std::vector<std::string>>();
  cp->add_option("paths", *paths, "sources, then the target")->required();
  cp->callback(
      [&context, paths] { context.run = [&context, paths] { return copy(context, *paths); }; });

  auto* job = app.add_subcommand(
      "run", "create, upload the folder, run, stream, download the output, release");
  auto plan = std::make_shared<RunOptions>();
  add_create_options(*job, plan->create);
  job->add_option("--folder", plan->folder, "what is uploaded into /root (its contents)");
  job->add_option("--output", plan->output, "what is downloaded afterwards, below /root");
  job->add_flag("--keep", plan->keep, "do not release the instance at the end");
  job->add_option("command", plan->command, "after --: the command")->required();
  job->callback(
      [&context, plan] { context.run = [&context, plan] { return run(context, *plan); }; });
}

}  // namespace autodl::cli
