// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/user_list.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "cli/output.hpp"

namespace autodl::cli {
namespace {

std::string trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(" \t");
  if (from == std::string_view::npos) return {};
  return std::string(text.substr(from, text.find_last_not_of(" \t") - from + 1));
}

// The fields of one line; none where a quote is not closed or something follows it.
std::optional<std::vector<std::string>> split(std::string_view line) {
  std::vector<std::string> fields;
  while (true) {
    const auto from = line.find_first_not_of(" \t");
    if (from == std::string_view::npos || line[from] != '"') {
      const auto comma = line.find(',');
      fields.push_back(trimmed(line.substr(0, comma)));
      if (comma == std::string_view::npos) return fields;
      line.remove_prefix(comma + 1);
      continue;
    }
    std::string field;
    std::size_t at = from + 1;
    for (; at < line.size(); ++at) {
      if (line[at] != '"') {
        field += line[at];
      } else if (at + 1 < line.size() && line[at + 1] == '"') {
        field += line[at++];
      } else {
        break;
      }
    }
    if (at >= line.size()) return std::nullopt;
    fields.push_back(field);
    const auto next = line.find_first_not_of(" \t", at + 1);
    if (next == std::string_view::npos) return fields;
    if (line[next] != ',') return std::nullopt;
    line.remove_prefix(next + 1);
  }
}

// What is wrong with the line; empty: out is set.
std::string read_line(std::string_view line, ListedUser& out) {
  const auto fields = split(line);
  if (!fields) return "a quoted field is not closed, or is followed by something";
  if (fields->size() > 3) return "more than name,group,credit";
  out.name = (*fields)[0];
  if (out.name.empty()) return "the name is missing";
  if (fields->size() > 1) out.group = (*fields)[1];
  if (fields->size() < 3 || (*fields)[2].empty()) return {};
  const auto credit = parse_amount((*fields)[2]);
  if (!credit.ok() || *credit < 0) return fmt::format("'{}' is no credit", clean((*fields)[2]));
  out.credit_micro = *credit;
  return {};
}

}  // namespace

Result<std::vector<ListedUser>> parse_user_list(std::string_view csv) {
  if (csv.starts_with("\xEF\xBB\xBF")) csv.remove_prefix(3);
  std::vector<ListedUser> users;
  std::map<std::string, std::size_t> lines;
  std::string faults;
  const auto fault = [&](std::size_t line, std::string_view text) {
    faults += fmt::format("{}line {}: {}", faults.empty() ? "" : "\n", line, text);
  };
  for (std::size_t number = 1; !csv.empty(); ++number) {
    const auto end = csv.find('\n');
    auto line = csv.substr(0, end);
    csv.remove_prefix(end == std::string_view::npos ? csv.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (trimmed(line).empty()) continue;
    ListedUser user;
    user.line = number;
    const auto wrong = read_line(line, user);
    if (number == 1 && user.name == "name") continue;
    if (!wrong.empty()) {
      fault(number, wrong);
      continue;
    }
    const auto [first, fresh] = lines.emplace(user.name, number);
    if (fresh) {
      users.push_back(std::move(user));
    } else {
      fault(number, fmt::format("'{}' stands in line {} already", clean(user.name), first->second));
    }
  }
  if (!faults.empty()) {
    return Error(ErrorKind::kInvalid, "usage", faults, "correct these lines: no account was made");
  }
  return users;
}

}  // namespace autodl::cli
