// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// `autodl admin …`: a group per noun, a function per group.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <iterator>

#include "base/unique_fd.hpp"
#include "cli/commands.hpp"
#include "cli/user_list.hpp"
#include "http/url.hpp"

namespace autodl::cli {
namespace {

using Text = std::shared_ptr<std::string>;

Text text_option(CLI::App& command, const char* name, const char* help, bool required = false) {
  auto value = std::make_shared<std::string>();
  auto* option = command.add_option(name, *value, help);
  if (required) option->required();
  return value;
}

std::string cell(const json::object& row, std::string_view key) {
  const auto* member = row.if_contains(key);
  if (member == nullptr || member->is_null()) return {};
  return member->is_string() ? std::string(member->get_string()) : json::serialize(*member);
}

// A page or all of it as a table of these members; headings are the members' names.
Result<int> show_list(Context& context, const std::string& path,
                      const std::vector<std::string>& keys) {
  ADL_TRY(api, context.api());
  ADL_TRY(answer, api.get(path));
  if (context.format == Format::kJson) return print_json(answer), 0;
  std::vector<std::vector<std::string>> rows;
  for (const auto& item : answer.as_object().at("items").as_array()) {
    std::vector<std::string> row;
    for (const auto& key : keys) row.push_back(cell(item.as_object(), key));
    rows.push_back(std::move(row));
  }
  fmt::print("{}", table(keys, rows));
  return 0;
}

void add_list(CLI::App& parent, Context& context, const char* name, const char* help,
              std::string path, std::vector<std::string> keys) {
  parent.add_subcommand(name, help)->callback([&context, path, keys] {
    context.run = [&context, path, keys] { return show_list(context, path, keys); };
  });
}

// POST that answers with the changed thing: its members, a line each.
Result<int> change(Context& context, const std::string& path, const json::object& body) {
  ADL_TRY(api, context.api());
  ADL_TRY(answer, api.post(path, body));
  if (context.format == Format::kJson) return print_json(answer), 0;
  std::vector<std::vector<std::string>> rows;
  for (const auto& [key, member] : answer.as_object()) {
    const auto value = cell(answer.as_object(), key);
    if (!value.empty()) rows.push_back({std::string(key), value});
  }
  fmt::print("{}", table({"WHAT", "NOW"}, rows));
  return 0;
}

std::string target(std::string_view noun, const std::string& key, std::string_view verb) {
  return fmt::format("/api/v1/admin/{}/{}/{}", noun, http::percent_encode(key), verb);
}

// A verb on one thing that takes nothing but a reason.
void add_verb(CLI::App& parent, Context& context, const char* name, const char* help,
              const char* noun, const char* what) {
  auto* command = parent.add_subcommand(name, help);
  auto key = text_option(*command, what, "which one", true);
  auto reason = text_option(*command, "--reason", "why, for the audit", true);
  const std::string verb = name;
  command->callback([&context, noun, key, reason, verb] {
    context.run = [&context, noun, key, reason, verb] {
      return change(context, target(noun, *key, verb), {{"reason", *reason}});
    };
  });
}

// ---- users

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  if (!in.good() && !in.eof())
    return Error(ErrorKind::kInvalid, "usage", fmt::format("can't read '{}'", path));
  return text;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

// Where new keys go: a file of the caller's alone, or stdout.
class KeySheet {
 public:
  Status open(const std::string& path) {
    if (path.empty()) return {};
    fd_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (fd_.valid()) return {};
    return Error(ErrorKind::kInvalid, "usage",
                 fmt::format("can't make '{}': {}", path, errno_error("", errno).message()),
                 "name a file that does not exist yet");
  }
  // Written at once: an import that is cut off has lost no key of an account that it made.
  Status add(const std::string& name, const json::object& made) {
    const auto line = fmt::format("{},{},{},{}\n", csv_field(name), text_of(made, "access_key"),
                                  text_of(made, "secret_key"), text_of(made, "token"));
    const int out = fd_.valid() ? fd_.get() : STDOUT_FILENO;
    if (::write(out, line.data(), line.size()) == static_cast<ssize_t>(line.size())) return {};
    return errno_error("write the keys of '" + name + "'", errno);
  }

 private:
  UniqueFd fd_;
};

Result<int> import_users(Context& context, const std::string& path, const std::string& out) {
  ADL_TRY(text, read_file(path));
  ADL_TRY(users, parse_user_list(text));
  ADL_TRY(api, context.api());
  KeySheet sheet;
  ADL_TRY_STATUS(sheet.open(out));
  int made = 0, there = 0, failed = 0;
  for (const auto& user : users) {
    const auto answer =
        api.post("/api/v1/admin/accounts", json::object{{"name", user.name},
                                                        {"group", user.group},
                                                        {"credit_micro", user.credit_micro}});
    const auto shown = clean(user.name);
    if (answer.ok()) {
      ADL_TRY_STATUS(sheet.add(user.name, answer->as_object()));
      fmt::print(stderr, "line {}: {} made\n", user.line, shown);
      ++made;
    } else if (answer.error().code() == "name_taken") {
      fmt::print(stderr, "line {}: {} is there already, left as it is\n", user.line, shown);
      ++there;
    } else {
      fmt::print(stderr, "line {}: {} not made: {}\n", user.line, shown, answer.error().message());
      ++failed;
    }
  }
  fmt::print(stderr, "{} made, {} there before, {} failed\n", made, there, failed);
  return failed == 0 ? 0 : 1;
}

void add_user_verbs(CLI::App& users, Context& context) {
  auto* import = users.add_subcommand(
      "import",
      "make the accounts of a CSV file (name,group,credit); run it again as often as "
      "you like: what is there already is left as it is");
  auto path = text_option(*import, "file", "the CSV file", true);
  auto out = text_option(*import, "--out",
                         "a new file for the keys (CSV: name,access key,secret key,token; mode "
                         "0600), which are shown this once; default: stdout");
  import->callback([&context, path, out] {
    context.run = [&context, path, out] { return import_users(context, *path, *out); };
  });
  auto* disable = users.add_subcommand(
      "disable", "refuse sign-in, cancel what waits, stop what runs after an hour's notice");
  auto name = text_option(*disable, "user", "name or id", true);
  auto reason = text_option(*disable, "--reason", "why, for the audit", true);
  auto at_once = std::make_shared<bool>(false);
  auto after = std::make_shared<std::int64_t>(3'600);
  disable->add_flag("--stop", *at_once, "stop what runs at once");
  disable->add_option("--stop-after", *after, "seconds until what runs is stopped (3600)")
      ->check(CLI::NonNegativeNumber);
  disable->callback([&context, name, reason, at_once, after] {
    context.run = [&context, name, reason, at_once, after] {
      return change(context, target("accounts", *name, "disable"),
                    {{"reason", *reason}, {"stop_after_s", *at_once ? 0 : *after}});
    };
  });
  add_verb(users, context, "enable", "let a disabled user in again", "accounts", "user");
}

void add_users(CLI::App& admin, Context& context) {
  auto* users = admin.add_subcommand("user", "accounts")->require_subcommand(1);
  auto* add = users->add_subcommand("add", "make an account; prints its keys once");
  auto name = text_option(*add, "name", "the account's name", true);
  auto role = std::make_shared<std::string>("user");
  add->add_option("--role", *role, "user or operator")->check(CLI::IsMember({"user", "operator"}));
  auto group = text_option(*add, "--group", "its group; made where there is none of that name");
  add->callback([&context, name, role, group] {
    context.run = [&context, name, role, group]() -> Result<int> {
      ADL_TRY(api, context.api());
      json::object body{{"name", *name}, {"role", *role}};
      if (!group->empty()) body["group"] = *group;
      ADL_TRY(answer, api.post("/api/v1/admin/accounts", body));
      return print_new_account(context, answer), 0;
    };
  });
  add_list(*users, context, "list", "all accounts", "/api/v1/admin/accounts",
           {"id", "name", "role", "group", "disabled", "balance_micro", "held_micro", "cards_held",
            "cards_max", "instances", "instances_max"});
  add_user_verbs(*users, context);
}

void add_credit(CLI::App& admin, Context& context) {
  auto* credit =
      admin.add_subcommand("credit", "add to an account's balance (or take, by a negative amount)");
  auto account = text_option(*credit, "account", "name or id", true);
  auto amount = text_option(*credit, "amount", "in whole units, such as 100 or 12.5", true);
  auto reason = text_option(*credit, "--reason", "why, for the audit", true);
  credit->callback([&context, account, reason, amount] {
    context.run = [&context, account, reason, amount]() -> Result<int> {
      ADL_TRY(api, context.api());
      ADL_TRY(micro, parse_amount(*amount));
      ADL_TRY(answer, api.post(target("accounts", *account, "credit"),
                               json::object{{"amount_micro", micro}, {"reason", *reason}}));
      return print_json(answer), 0;
    };
  });
}

// ---- quotas

// "none" is -1, the API's word for no limit.
Result<std::int64_t> parse_limit(const std::string& text) {
  if (text == "none") return -1;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size() && number >= 0) return number;
  return Error(ErrorKind::kInvalid, "usage",
               fmt::format("'{}' is neither a number nor none", clean(text)));
}

void add_quota(CLI::App& admin, Context& context) {
  auto* quota = admin.add_subcommand("quota", "what may be held at once")->require_subcommand(1);
  auto* set = quota->add_subcommand(
      "set", "cards and instances that a user, or all of a group together, may hold at once");
  auto user = text_option(*set, "user", "name or id");
  auto group = text_option(*set, "--group", "a group instead of a user");
  auto cards = text_option(*set, "--cards", "a number, or none for no limit");
  auto instances = text_option(*set, "--instances", "a number, or none for no limit");
  auto reason = text_option(*set, "--reason", "why, for the audit");
  set->callback([&context, user, group, cards, instances, reason] {
    context.run = [&context, user, group, cards, instances, reason]() -> Result<int> {
      if (user->empty() == group->empty() || (cards->empty() && instances->empty())) {
        return Error(ErrorKind::kInvalid, "usage",
                     "quota set needs a user or --group, and --cards or --instances");
      }
      json::object body{{"reason", *reason}};
      if (!cards->empty()) {
        ADL_TRY(number, parse_limit(*cards));
        body["cards_max"] = number;
      }
      if (!instances->empty()) {
        ADL_TRY(number, parse_limit(*instances));
        body["instances_max"] = number;
      }
      const bool of_user = group->empty();
      return change(context,
                    target(of_user ? "accounts" : "groups", of_user ? *user : *group, "quota"),
                    body);
    };
  });
}

// ---- nodes, cards, images, audit

const std::vector<std::string> kNodeKeys = {"id",       "reachable",   "driver_version",
                                            "cards",    "cordoned",    "running",
                                            "draining", "drain_until", "drain_reason"};
const std::vector<std::string> kCardKeys = {"id",     "node",     "type",     "health",
                                            "reason", "instance", "cordoned", "cordon_reason"};

void add_nodes(CLI::App& admin, Context& context) {
  add_list(admin, context, "nodes", "as node list", "/api/v1/admin/nodes", kNodeKeys);
  auto* node = admin.add_subcommand("node", "machines")->require_subcommand(1);
  add_list(*node, context, "list", "the nodes", "/api/v1/admin/nodes", kNodeKeys);
  auto* drain = node->add_subcommand(
      "drain", "nothing new starts there; what runs goes on, and its owners are told");
  auto id = text_option(*drain, "node", "which one", true);
  auto until =
      text_option(*drain, "--until", "a time told to owners, such as 2026-12-24T08:00:00Z");
  auto reason = text_option(*drain, "--reason", "why; owners see it", true);
  drain->callback([&context, id, until, reason] {
    context.run = [&context, id, until, reason] {
      json::object body{{"reason", *reason}};
      if (!until->empty()) body["until"] = *until;
      return change(context, target("nodes", *id, "drain"), body);
    };
  });
  add_verb(*node, context, "resume", "take new runs again", "nodes", "node");
}

void add_cards(CLI::App& admin, Context& context) {
  add_list(admin, context, "cards", "as card list", "/api/v1/admin/cards", kCardKeys);
  auto* card = admin.add_subcommand("card", "cards")->require_subcommand(1);
  add_list(*card, context, "list", "the cards, their health, and who holds them",
           "/api/v1/admin/cards", kCardKeys);
  add_verb(*card, context, "cordon", "grant it to nobody; a run that holds it goes on", "cards",
           "card");
  add_verb(*card, context, "uncordon", "it may be granted again", "cards", "card");
  auto* history = card->add_subcommand("history", "grants, quarantines, cordons; newest first");
  auto id = text_option(*history, "card", "its UUID", true);
  history->callback([&context, id] {
    context.run = [&context, id] {
      return show_list(context, target("cards", *id, "history") + "?limit=200",
                       {"at", "what", "instance", "run", "account", "detail"});
    };
  });
}

void add_images(CLI::App& admin, Context& context) {
  auto* image = admin.add_subcommand("image", "images")->require_subcommand(1);
  add_list(*image, context, "list", "what the catalogue names, and what is here", "/api/v1/images",
           {"name", "present", "digest", "size_bytes", "description"});
  auto* alias = image->add_subcommand(
      "alias", "another name for an image; without arguments: the list; REFERENCE '': remove");
  auto name = text_option(*alias, "alias", "the new name");
  auto reference = text_option(*alias, "reference", "the image it stands for");
  alias->callback([&context, name, reference, alias] {
    const bool all = alias->count("alias") == 0;
    const bool given = alias->count("reference") > 0;
    context.run = [&context, name, reference, all, given]() -> Result<int> {
      if (all) return show_list(context, "/api/v1/admin/image_aliases", {"alias", "reference"});
      if (!given)
        return Error(ErrorKind::kInvalid, "usage", "image alias needs the image it stands for");
      return change(context, "/api/v1/admin/image_aliases",
                    {{"alias", *name}, {"reference", *reference}});
    };
  });
}

void add_audit(CLI::App& admin, Context& context) {
  auto* audit = admin.add_subcommand("audit", "what operators changed, newest first");
  auto actor = text_option(*audit, "--by", "only changes by this operator");
  auto action = text_option(*audit, "--action", "such as user.disable; 'user.' for all of users");
  auto on = text_option(*audit, "--target", "only changes of this name or id");
  audit->callback([&context, actor, action, on] {
    context.run = [&context, actor, action, on] {
      std::string path = "/api/v1/admin/audit?limit=200";
      if (!actor->empty()) path += "&actor=" + http::percent_encode(*actor);
      if (!action->empty()) path += "&action=" + http::percent_encode(*action);
      if (!on->empty()) path += "&target=" + http::percent_encode(*on);
      return show_list(context, path,
                       {"at", "actor_name", "action", "target", "before", "after", "reason"});
    };
  });
}

// ---- backup

Status fetch_backup(Api& api, const json::object& made, int out) {
  const auto size = number_of(made, "size_bytes");
  Progress progress;
  for (std::int64_t at = 0; at < size;) {
    ADL_TRY(part,
            api.get_bytes(
                fmt::format("/api/v1/admin/backups/{}?offset={}", text_of(made, "id"), at), ""));
    if (part.bytes.empty())
      return Error(ErrorKind::kUnavailable, "cut_off", "the backup ended early", "make another");
    for (std::string_view rest = part.bytes; !rest.empty();) {
      const auto wrote = ::write(out, rest.data(), rest.size());
      if (wrote < 0) return errno_error("write the backup", errno);
      rest.remove_prefix(static_cast<std::size_t>(wrote));
    }
    at += static_cast<std::int64_t>(part.bytes.size());
    progress.show(fmt::format("{} of {}", bytes(at), bytes(size)));
  }
  if (::fsync(out) != 0) return errno_error("write the backup", errno);
  return {};
}

Result<int> backup(Context& context, const std::string& path) {
  ADL_TRY(api, context.api());
  const std::string part = path + ".part";
  const UniqueFd out(
      ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!out.valid()) return errno_error("make '" + part + "'", errno);
  ADL_TRY(made, api.post("/api/v1/admin/backups", json::object()));
  auto done = fetch_backup(api, made.as_object(), out.get());
  if (done.ok() && ::rename(part.c_str(), path.c_str()) != 0)
    done = errno_error("rename '" + part + "'", errno);
  if (!done.ok()) {
    ::unlink(part.c_str());
    return done.error();
  }
  if (context.format == Format::kJson) return print_json(made), 0;
  fmt::print(
      "{}: {}\nThe master key is not in it: keep <state>/control/master.key at another place.\n"
      "Disks of instances are not in it either. Back: autodld restore {}\n",
      path, bytes(number_of(made.as_object(), "size_bytes")), path);
  return 0;
}

void add_backup(CLI::App& admin, Context& context) {
  auto* command = admin.add_subcommand(
      "backup",
      "copy the store (users, money, instances' rows; no disks, no master key) to a file");
  auto path = text_option(*command, "path", "the file to write", true);
  command->callback(
      [&context, path] { context.run = [&context, path] { return backup(context, *path); }; });
}

}  // namespace

void add_admin_commands(CLI::App& app, Context& context) {
  auto* admin = app.add_subcommand(
      "admin", "for operators: users, credit, quotas, nodes, cards, images, audit");
  admin->require_subcommand(1);
  add_users(*admin, context);
  add_credit(*admin, context);
  add_quota(*admin, context);
  add_nodes(*admin, context);
  add_cards(*admin, context);
  add_images(*admin, context);
  add_audit(*admin, context);
  add_backup(*admin, context);
}

}  // namespace autodl::cli
