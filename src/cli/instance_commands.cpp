// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <thread>

#include "cli/commands.hpp"
#include "http/url.hpp"

namespace autodl::cli {

std::string instance_target(const std::string& instance, std::string_view rest) {
  return fmt::format("/api/v1/instances/{}{}", http::percent_encode(instance), rest);
}

Result<json::object> get_instance(Api& api, const std::string& instance) {
  ADL_TRY(answer, api.get(instance_target(instance)));
  return answer.as_object();
}

Result<json::object> create_instance(Api& api, const json::object& request) {
  ADL_TRY(answer, api.post("/api/v1/instances", request));
  return answer.as_object();
}

void show_substitution(const json::object& instance) {
  const auto* substituted = instance.if_contains("substituted");
  if (substituted != nullptr && substituted->is_bool() && substituted->get_bool())
    fmt::print(stderr, "note: image {} is served here by {}\n", clean(text_of(instance, "image")),
               clean(text_of(instance, "image_resolved")));
}

Result<json::object> wait_for(Api& api, const std::string& instance, std::string_view first,
                              std::string_view second) {
  Progress progress;
  for (auto pause = std::chrono::milliseconds{30};;
       pause = std::min(pause * 2, std::chrono::milliseconds{1000})) {
    ADL_TRY(row, get_instance(api, instance));
    const auto status = text_of(row, "status");
    const auto state = text_of(row, "state");
    if (status == first || status == second || state == first || state == second) return row;
    std::string note = state;
    if (const auto* queue = row.if_contains("queue"); queue != nullptr && queue->is_object())
      note += fmt::format(": place {}, {}", number_of(queue->get_object(), "position"),
                          text_of(queue->get_object(), "reason"));
    if (const auto* step = row.if_contains("progress"); step != nullptr && step->is_object())
      note += ": " + text_of(step->get_object(), "phase");
    progress.show(fmt::format("{} {}", text_of(row, "name"), note));
    std::this_thread::sleep_for(pause);
  }
}

Result<json::object> once_running(Api& api, const std::string& instance) {
  ADL_TRY(now, get_instance(api, instance));
  const auto coming = [&now] {
    const auto status = text_of(now, "status");
    return status == "QUEUED" || status == "STARTING";
  };
  if (coming()) {
    ADL_TRY(reached, wait_for(api, text_of(now, "id"), "RUNNING", "STOPPED"));
    now = std::move(reached);
  }
  const auto status = text_of(now, "status");
  if (status == "RUNNING" || status == "STOPPING") return now;
  const auto name = text_of(now, "name");
  const auto reason = text_of(now, "reason");
  const bool released = text_of(now, "state") == "released";
  return Error(
      ErrorKind::kConflict, "not_running",
      fmt::format("{} is {}, not running{}{}", name, text_of(now, "state"),
                  reason.empty() ? "" : ": ", reason),
      released ? "it is gone; make another: autodl create" : "start it: autodl start " + name);
}

namespace {
constexpr std::int64_t kDiskGibMax = std::int64_t{1} << 32;
}

void add_create_options(CLI::App& command, CreateOptions& options) {
  command.add_option("--image", options.image, "catalogue name, alias or OCI reference")
      ->required();
  command.add_option("--gpu", options.gpu, "card type, such as \"RTX 3090\"");
  command.add_option("--gpus", options.gpu_count, "number of cards; 0: none");
  command.add_option("--name", options.name, "a name; 001, 002, … where none is given");
  command.add_option("--disk", options.disk_gib, "hard size of the file system, GB of 2^30 bytes")
      ->check(CLI::Range(-kDiskGibMax, kDiskGibMax));  // what makes sense, the server says
  command.add_option("--max-runtime", options.max_runtime_s, "end the run after this many seconds");
  // One value each, so that a word behind it is not taken for another.
  command.add_option("--env", options.env, "NAME=VALUE; may be repeated")->allow_extra_args(false);
  command.add_option("--ssh-key", options.ssh_keys, "public key file; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--workdir", options.workdir, "where the command starts");
  command.add_option("--restart", options.restart, "never, or on-loss");
  command.add_flag("--allow-cpu-image", options.allow_cpu_image,
                   "accept a substitute image that has no CUDA");
}

namespace {
Result<std::string> read_text(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr)
    return errno_error(fmt::format("open '{}'", path), errno, ErrorKind::kInvalid);
  std::string text(64 << 10, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}
}  // namespace

std::string shell_quote(const std::vector<std::string>& words) {
  std::string line;
  for (const auto& word : words) {
    if (!line.empty()) line += ' ';
    const bool plain =
        !word.empty() &&
        word.find_first_not_of(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./=:,@%+") ==
            std::string::npos;
    if (plain) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

Result<json::object> create_request(const CreateOptions& options,
                                    const std::vector<std::string>& command) {
  json::object request{{"image", options.image},
                       {"gpu_count", options.gpu_count},
                       {"disk_bytes", options.disk_gib * (std::int64_t{1} << 30)},
                       {"workdir", options.workdir},
                       {"restart", options.restart},
                       {"allow_cpu_image", options.allow_cpu_image}};
  if (!options.name.empty()) request["name"] = options.name;
  if (!options.gpu.empty()) request["gpu_type"] = options.gpu;
  if (options.max_runtime_s != 0) request["max_runtime_s"] = options.max_runtime_s;
  // One word is a shell line as it stands; several are quoted into one.
  if (command.size() == 1) request["command"] = command.front();
  if (command.size() > 1) request["command"] = shell_quote(command);
  json::object env;
  for (const auto& pair : options.env) {
    const auto equals = pair.find('=');
    if (equals == std::string::npos)
      return Error(ErrorKind::kInvalid, "usage", fmt::format("--env '{}' has no '='", pair),
                   "write it as NAME=VALUE");
    env[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  request["env"] = std::move(env);
  json::array keys;
  for (const auto& path : options.ssh_keys) {
    ADL_TRY(key, read_text(path));
    keys.emplace_back(key);
  }
  request["ssh_keys"] = std::move(keys);
  return request;
}

Status follow_logs(Api& api, const std::string& instance) {
  return api.events(instance_target(instance, "/logs"), [](const http::SseEvent& event) {
    if (event.event == "end") return false;
    boost::system::error_code failed;
    const auto entry = json::parse(event.data, failed);
    if (event.event != "log" || failed || !entry.is_object()) return true;
    const auto& row = entry.get_object();
    const auto* partial = row.if_contains("partial");
    const bool whole = partial == nullptr || !partial->is_bool() || !partial->get_bool();
    auto* out = text_of(row, "stream") == "stderr" ? stderr : stdout;
    fmt::print(out, "{}{}", text_of(row, "text"), whole ? "\n" : "");
    std::fflush(out);
    return true;
  });
}

namespace {

Result<int> print_logs(Context& context, const std::string& instance, bool follow) {
  ADL_TRY(api, context.api());
  if (follow) {
    ADL_TRY_STATUS(follow_logs(api, instance));
    return 0;
  }
  std::int64_t offset = 0;
  for (;;) {
    ADL_TRY(answer, api.get(instance_target(instance, fmt::format("/logs?offset={}", offset))));
    const auto& page = answer.as_object();
    for (const auto& item : page.at("entries").as_array()) {
      const auto& row = item.as_object();
      if (context.format == Format::kJson) {
        print_json(item);
        continue;
      }
      auto* out = text_of(row, "stream") == "stderr" ? stderr : stdout;
      fmt::print(out, "{}{}", text_of(row, "text"),
                 row.contains("partial") && row.at("partial").as_bool() ? "" : "\n");
    }
    const auto next = number_of(page, "next");
    if (next == offset) return 0;
    offset = next;
  }
}

std::vector<std::string> row_of(const json::object& instance) {
  const auto cards = number_of(instance, "gpu_count");
  const auto currency = text_of(instance, "currency");
  return {text_of(instance, "name"),
          text_of(instance, "state"),
          cards == 0 ? "none" : fmt::format("{}× {}", cards, text_of(instance, "gpu_type")),
          text_of(instance, "image"),
          duration(number_of(instance, "runtime_s")),
          money(number_of(instance, "cost_micro"), currency),
          text_of(instance, "id")};
}

Result<int> list_instances(Context& context, bool all) {
  ADL_TRY(api, context.api());
  std::vector<std::vector<std::string>> rows;
  json::array kept;
  std::string cursor;
  do {
    ADL_TRY(answer, api.get("/api/v1/instances?limit=200" +
                            (cursor.empty() ? "" : "&cursor=" + http::percent_encode(cursor))));
    const auto& page = answer.as_object();
    for (const auto& item : page.at("items").as_array()) {
      if (!all && text_of(item.as_object(), "state") == "released") continue;
      rows.push_back(row_of(item.as_object()));
      kept.push_back(item);
    }
    cursor = text_of(page, "next");
  } while (!cursor.empty());
  if (context.format == Format::kJson) return print_json(kept), 0;
  fmt::print("{}", table({"NAME", "STATE", "CARDS", "IMAGE", "RAN", "COST", "ID"}, rows));
  return 0;
}

Result<int> show(Context& context, const std::string& instance) {
  ADL_TRY(api, context.api());
  ADL_TRY(row, get_instance(api, instance));
  if (context.format == Format::kJson) return print_json(row), 0;
  for (const auto& [key, value] : row) {
    if (value.is_null()) continue;
    fmt::print("{:22} {}\n", std::string(key),
               value.is_string() ? clean(std::string(value.get_string())) : json::serialize(value));
  }
  return 0;
}

Result<int> events(Context& context, const std::string& instance) {
  ADL_TRY(api, context.api());
  std::vector<std::vector<std::string>> rows;
  json::array kept;
  std::int64_t after = 0;
  for (bool more = true; more;) {
    ADL_TRY(answer,
            api.get(instance_target(instance, fmt::format("/events?after={}&limit=200", after))));
    const auto& items = answer.as_object().at("items").as_array();
    for (const auto& item : items) {
      const auto& row = item.as_object();
      after = number_of(row, "seq");
      rows.push_back({text_of(row, "at"), text_of(row, "type"), text_of(row, "actor"),
                      text_of(row, "message")});
      kept.push_back(item);
    }
    more = !items.empty();
  }
  if (context.format == Format::kJson) return print_json(kept), 0;
  fmt::print("{}", table({"AT", "EVENT", "BY", "WHAT"}, rows));
  return 0;
}

Result<int> bill(Context& context, const std::string& instance) {
  ADL_TRY(api, context.api());
  ADL_TRY(answer,
          instance.empty() ? api.get("/api/v1/bill") : api.get(instance_target(instance, "/bill")));
  if (context.format == Format::kJson) return print_json(answer), 0;
  const auto& whole = answer.as_object();
  const auto currency = text_of(whole, "currency");
  json::array bills;
  if (instance.empty())
    bills = whole.at("items").as_array();
  else
    bills.push_back(answer);
  for (const auto& item : bills) {
    const auto& one = item.as_object();
    std::vector<std::vector<std::string>> rows;
    for (const auto& power_on : one.at("runs").as_array()) {
      const auto& run = power_on.as_object();
      for (const auto& part : run.at("intervals").as_array()) {
        const auto& interval = part.as_object();
        rows.push_back({fmt::format("{}", number_of(run, "attempt")), text_of(interval, "from"),
                        text_of(interval, "to"), fmt::format("{} ms", number_of(interval, "ms")),
                        interval.at("billed").as_bool() ? "billed" : text_of(interval, "reason"),
                        ""});
      }
      rows.push_back(
          {fmt::format("{}", number_of(run, "attempt")), "", "",
           fmt::format("{} s", number_of(run, "seconds")),
           fmt::format("{}× {} at {}/h", number_of(run, "cards"), text_of(run, "gpu_type"),
                       money(number_of(run, "price_micro_per_card_hour"), currency)),
           money(number_of(run, "amount_micro"), currency)});
    }
    fmt::print("{} ({})\n{}", clean(text_of(one, "name")), text_of(one, "instance"),
               table({"RUN", "FROM", "TO", "TIME", "WHAT", "AMOUNT"}, rows));
    const auto& storage = one.at("storage").as_object();
    if (number_of(storage, "amount_micro") != 0)
      fmt::print("storage {}\n", money(number_of(storage, "amount_micro"), currency));
    fmt::print("total {}\n\n", money(number_of(one, "total_micro"), currency));
  }
  if (instance.empty())
    fmt::print("all together {}\n", money(number_of(whole, "total_micro"), currency));
  return 0;
}

// start, stop, release: one call, then perhaps waiting for the state it leads to.
void add_verb(CLI::App& app, Context& context, const char* verb, const char* help,
              const char* first, const char* second) {
  auto* command = app.add_subcommand(verb, help);
  auto names = std::make_shared<std::vector<std::string>>();
  auto wait = std::make_shared<bool>(false);
  command->add_option("instance", *names, "names or ids")->required();
  command->add_flag("--wait", *wait, "return when it is done");
  command->callback([&context, names, wait, verb, first, second] {
    context.run = [&context, names, wait, verb, first, second]() -> Result<int> {
      ADL_TRY(api, context.api());
      for (const auto& name : *names) {
        ADL_TRY(answer, api.post(instance_target(name, std::string("/") + verb), json::object{}));
        auto row = answer.as_object();
        if (*wait) {
          ADL_TRY(reached, wait_for(api, text_of(row, "id"), first, second));
          row = reached;
        }
        const auto state = text_of(row, "state");
        const bool going = std::string_view(verb) == "release" && state != "released";
        if (context.format == Format::kJson)
          print_json(row);
        else
          fmt::print("{} {}\n", text_of(row, "name"), going ? "is being released" : state);
      }
      return 0;
    };
  });
}

}  // namespace

void add_instance_commands(CLI::App& app, Context& context) {
  auto* create = app.add_subcommand("create", "make an instance; nothing runs before start");
  auto options = std::make_shared<CreateOptions>();
  auto words = std::make_shared<std::vector<std::string>>();
  add_create_options(*create, *options);
  create->add_option("command", *words,
                     "after --: the command of a task; none: a machine to SSH into");
  create->callback([&context, options, words] {
    context.run = [&context, options, words]() -> Result<int> {
      ADL_TRY(api, context.api());
      ADL_TRY(request, create_request(*options, *words));
      ADL_TRY(row, create_instance(api, request));
      if (context.format == Format::kJson) return print_json(row), 0;
      show_substitution(row);
      fmt::print("{} ({})\n", text_of(row, "name"), text_of(row, "id"));
      return 0;
    };
  });
  add_verb(app, context, "start", "power on; queued where no card is free", "RUNNING", "STOPPED");
  add_verb(app, context, "stop", "power off; the disk is kept", "STOPPED", "STOPPED");
  add_verb(app, context, "release", "delete instance and disk", "released", "released");
  auto* ps = app.add_subcommand("ps", "your instances");
  auto all = std::make_shared<bool>(false);
  ps->add_flag("-a,--all", *all, "released ones too");
  ps->callback(
      [&context, all] { context.run = [&context, all] { return list_instances(context, *all); }; });
  const auto on_one = [&](const char* name, const char* help, auto run, bool required) {
    auto* command = app.add_subcommand(name, help);
    auto instance = std::make_shared<std::string>();
    auto* option = command->add_option("instance", *instance, "name or id");
    if (required) option->required();
    command->callback([&context, instance, run] {
      context.run = [&context, instance, run] { return run(context, *instance); };
    });
  };
  on_one("show", "all about an instance", show, true);
  on_one("events", "what happened to an instance", events, true);
  on_one("bill", "runs, intervals, prices, amounts", bill, false);
  auto* logs = app.add_subcommand("logs", "what the command printed");
  auto instance = std::make_shared<std::string>();
  auto follow = std::make_shared<bool>(false);
  logs->add_option("instance", *instance, "name or id")->required();
  logs->add_flag("-f,--follow", *follow, "go on until the run ends");
  logs->callback([&context, instance, follow] {
    context.run = [&context, instance, follow] { return print_logs(context, *instance, *follow); };
  });
}

}  // namespace autodl::cli
