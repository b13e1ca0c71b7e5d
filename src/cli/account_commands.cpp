// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

#include "cli/commands.hpp"
#include "http/url.hpp"

namespace autodl::cli {

Result<Api> Context::api() {
  ADL_TRY(credentials, load_credentials(flags, endpoint_given, environment));
  if (!credentials.complete())
    return Error(ErrorKind::kDenied, "not_signed_in", "no keys are known",
                 "run: autodl login (or set AUTODL_ACCESS_KEY and AUTODL_SECRET_KEY)");
  return Api::make(std::move(credentials), clock, random);
}

std::string text_of(const json::object& object, std::string_view key) {
  const auto* member = object.if_contains(key);
  return member != nullptr && member->is_string() ? std::string(member->get_string())
                                                  : std::string();
}

std::int64_t number_of(const json::object& object, std::string_view key) {
  const auto* member = object.if_contains(key);
  boost::system::error_code failed;
  return member != nullptr && member->is_number() ? member->to_number<std::int64_t>(failed) : 0;
}

namespace {

std::string ask(std::string_view question, bool secret) {
  if (::isatty(STDIN_FILENO) == 0) {
    std::string line;
    std::getline(std::cin, line);
    return line;
  }
  if (secret) return ::getpass(std::string(question).c_str());
  fmt::print(stderr, "{}", question);
  std::string line;
  std::getline(std::cin, line);
  return line;
}

Result<int> login(Context& context) {
  auto credentials = context.flags;
  if (!context.endpoint_given)
    credentials.endpoint = context.environment("AUTODL_ENDPOINT").value_or(credentials.endpoint);
  if (!credentials.complete()) {
    credentials.access_key = ask("access key: ", false);
    credentials.secret_key = ask("secret key: ", true);
  }
  ADL_TRY(api, Api::make(credentials, context.clock, context.random));
  ADL_TRY(answer, api.get("/api/v1/account"));
  const auto path = config_path(context.environment);
  ADL_TRY_STATUS(save_credentials(credentials, path));
  fmt::print("signed in as {}; kept in {}\n", text_of(answer.as_object(), "name"), path);
  return 0;
}

Result<int> balance(Context& context) {
  ADL_TRY(api, context.api());
  ADL_TRY(answer, api.get("/api/v1/balance"));
  if (context.format == Format::kJson) return print_json(answer), 0;
  const auto& row = answer.as_object();
  const auto currency = text_of(row, "currency");
  fmt::print("balance   {}\nheld      {}\navailable {}\n",
             money(number_of(row, "balance_micro"), currency),
             money(number_of(row, "held_micro"), currency),
             money(number_of(row, "available_micro"), currency));
  return 0;
}

Result<int> gpus(Context& context) {
  ADL_TRY(api, context.api());
  ADL_TRY(answer, api.get("/api/v1/gpu_types"));
  if (context.format == Format::kJson) return print_json(answer), 0;
  std::vector<std::vector<std::string>> rows;
  bool simulated = false;
  for (const auto& item : answer.as_object().at("items").as_array()) {
    const auto& row = item.as_object();
    simulated = simulated || (row.contains("simulated") && row.at("simulated").as_bool());
    rows.push_back(
        {text_of(row, "name"), bytes(number_of(row, "memory_bytes")),
         fmt::format("{} of {}", number_of(row, "free"), number_of(row, "total")),
         money(number_of(row, "price_micro_per_hour"), text_of(row, "currency")) + "/h"});
  }
  fmt::print("{}", table({"CARD", "MEMORY", "FREE", "PRICE"}, rows));
  if (simulated) fmt::print("\nThese cards are SIMULATED: computation runs on the CPU.\n");
  return 0;
}

Result<int> images(Context& context) {
  ADL_TRY(api, context.api());
  ADL_TRY(answer, api.get("/api/v1/images"));
  if (context.format == Format::kJson) return print_json(answer), 0;
  std::vector<std::vector<std::string>> rows;
  for (const auto& item : answer.as_object().at("items").as_array()) {
    const auto& row = item.as_object();
    std::string aliases;
    for (const auto& alias : row.at("aliases").as_array())
      aliases += (aliases.empty() ? "" : ", ") + std::string(alias.as_string());
    rows.push_back({text_of(row, "name"),
                    row.at("present").as_bool() ? "here" : "pulled at first use",
                    row.at("size_bytes").is_null() ? "" : bytes(number_of(row, "size_bytes")),
                    text_of(row, "description"), aliases});
  }
  fmt::print("{}", table({"IMAGE", "WHERE", "SIZE", "WHAT", "ALSO KNOWN AS"}, rows));
  return 0;
}

}  // namespace

void print_new_account(Context& context, const json::value& answer) {
  if (context.format == Format::kJson) return print_json(answer);
  const auto& made = answer.as_object();
  fmt::print(
      "account    {} ({})\naccess key {}\nsecret key {}\ntoken      {}\n"
      "The secret key and the token are shown this once.\n",
      text_of(made.at("account").as_object(), "name"),
      text_of(made.at("account").as_object(), "id"), text_of(made, "access_key"),
      text_of(made, "secret_key"), text_of(made, "token"));
}

void add_account_commands(CLI::App& app, Context& context) {
  const auto simple = [&](const char* name, const char* help, Result<int> (*run)(Context&)) {
    app.add_subcommand(name, help)->callback([&context, run] {
      context.run = [&context, run] { return run(context); };
    });
  };
  simple("login", "keep endpoint and keys in ~/.config/autodl/config.toml", login);
  simple("balance", "what you have and what is held", balance);
  simple("gpus", "cards, free cards, prices", gpus);
  simple("images", "the catalogue's images and their other names", images);
  auto* setup =
      app.add_subcommand("setup", "make the first operator; reads the setup token from stdin");
  auto name = std::make_shared<std::string>("operator");
  setup->add_option("--name", *name, "the operator's name");
  setup->callback([&context, name] {
    context.run = [&context, name]() -> Result<int> {
      ADL_TRY(credentials,
              load_credentials(context.flags, context.endpoint_given, context.environment));
      ADL_TRY(api, Api::make({.endpoint = credentials.endpoint}, context.clock, context.random));
      // Never an argument: those stand in every user's list of processes.
      const auto token = ask("setup token: ", true);
      ADL_TRY(answer,
              api.post("/api/v1/setup", json::object{{"setup_token", token}, {"name", *name}}));
      return print_new_account(context, answer), 0;
    };
  });
}

}  // namespace autodl::cli
