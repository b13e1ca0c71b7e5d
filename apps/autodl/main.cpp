// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// autodl: the command line of the platform.
#include <fmt/format.h>

#include <cstdlib>
#include <exception>

#include "cli/commands.hpp"

int main(int argc, char** argv) {
  using namespace autodl::cli;
  CLI::App app{
      "autodl: pick a card, pay, SSH in, and type commands.\n\n"
      "  autodl login\n"
      "  autodl run --gpu \"RTX 3090\" --image autodl/pytorch:2.6.0-cpu-py313 -- python "
      "train.py\n\n"
      "Exit codes: 0 done; 1 refused; 2 usage; 3 not signed in; 4 not found; 5 conflict; 6 "
      "balance\n"
      "too low; 7 server away. ssh, exec and run give the remote command's own."};
  app.require_subcommand(1);
  app.fallthrough();
  Context context;
  context.environment = [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
  std::string format = "table";
  auto* endpoint = app.add_option("--endpoint", context.flags.endpoint, "the server's address");
  app.add_option("--access-key", context.flags.access_key, "access key");
  app.add_option("--secret-key", context.flags.secret_key,
                 "secret key (better in the environment: AUTODL_SECRET_KEY)");
  app.add_option("-o,--output-format", format, "table or json")
      ->check(CLI::IsMember({"table", "json"}));
  app.set_version_flag("--version", "autodl " ADL_VERSION);
  add_account_commands(app, context);
  add_admin_commands(app, context);
  add_instance_commands(app, context);
  add_remote_commands(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  }
  context.endpoint_given = endpoint->count() > 0;
  context.format = format == "json" ? Format::kJson : Format::kTable;
  try {
    const auto code = context.run();
    if (code.ok()) return *code;
    print_error(code.error());
    return exit_code_of(code.error());
  } catch (const std::exception& problem) {
    // Answers are read by their documented shape; one of another shape ends here.
    const autodl::Error error(autodl::ErrorKind::kInternal, "bad_answer",
                              fmt::format("the server's answer makes no sense: {}", problem.what()),
                              "is the endpoint an autodl server of this version?");
    print_error(error);
    return exit_code_of(error);
  }
}
