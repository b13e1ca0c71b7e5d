// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/output.hpp"

#include <fmt/format.h>
#include <libsmartcols/libsmartcols.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace autodl::cli {

std::string clean(std::string_view text) {
  std::string kept;
  for (const char c : text) kept += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return kept;
}

std::string table(const std::vector<std::string>& headings,
                  const std::vector<std::vector<std::string>>& rows) {
  static const bool located =
      std::setlocale(LC_CTYPE, "") != nullptr || std::setlocale(LC_CTYPE, "C.UTF-8") != nullptr;
  static_cast<void>(located);
  const std::unique_ptr<libscols_table, void (*)(libscols_table*)> made(scols_new_table(),
                                                                        scols_unref_table);
  scols_table_enable_noencoding(made.get(), 1);
  for (const auto& heading : headings) scols_table_new_column(made.get(), heading.c_str(), 0, 0);
  for (const auto& row : rows) {
    auto* line = scols_table_new_line(made.get(), nullptr);
    for (std::size_t i = 0; i < row.size() && i < headings.size(); ++i)
      scols_line_set_data(line, i, clean(row[i]).c_str());
  }
  char* printed = nullptr;
  std::string text;
  if (scols_print_table_to_string(made.get(), &printed) == 0 && printed != nullptr) text = printed;
  std::free(printed);
  if (!text.empty() && text.back() != '\n') text += '\n';
  return text;
}

std::string money(std::int64_t micro, std::string_view currency) {
  const auto sign = micro < 0 ? "-" : "";
  const auto positive =
      micro < 0 ? -static_cast<std::uint64_t>(micro) : static_cast<std::uint64_t>(micro);
  auto fraction = fmt::format("{:06}", positive % 1'000'000);
  while (fraction.size() > 2 && fraction.back() == '0') fraction.pop_back();
  const auto number = fmt::format("{}.{}", positive / 1'000'000, fraction);
  if (currency == "CNY") return fmt::format("{}¥{}", sign, number);
  if (currency == "USD") return fmt::format("{}${}", sign, number);
  return fmt::format("{}{} credits", sign, number);
}

Result<std::int64_t> parse_amount(std::string_view text) {
  const Error wrong(ErrorKind::kInvalid, "usage", fmt::format("'{}' is not an amount", clean(text)),
                    "write it as 100, 12.5 or -3, with six decimals at most");
  const bool negative = text.starts_with('-');
  std::string_view digits = text.substr(negative ? 1 : 0);
  const auto point = std::min(digits.find('.'), digits.size());
  const auto whole = digits.substr(0, point);
  const auto fraction = digits.substr(std::min(point + 1, digits.size()));
  const auto all_digits = [](std::string_view part) {
    return part.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (whole.empty() || whole.size() > 12 || fraction.size() > 6 || !all_digits(whole) ||
      !all_digits(fraction) || (point < digits.size() && fraction.empty()))
    return wrong;
  std::int64_t micro = 0;
  for (const char digit :
       std::string(whole) + std::string(fraction) + std::string(6 - fraction.size(), '0'))
    micro = micro * 10 + (digit - '0');
  return negative ? -micro : micro;
}

std::string duration(std::int64_t seconds) {
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  return fmt::format("{}h{:02}m{:02}s", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

std::string bytes(std::int64_t count) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(count);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return value == static_cast<double>(static_cast<std::int64_t>(value))
             ? fmt::format("{:.0f} {}", value, kUnits[unit])
             : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

void print_json(const boost::json::value& value) {
  fmt::print("{}\n", boost::json::serialize(value));
}

void print_error(const Error& error) {
  const bool colour = ::isatty(STDERR_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  fmt::print(stderr, "{}error:{} {}\n", colour ? "\033[31m" : "", colour ? "\033[0m" : "",
             clean(error.message()));
  if (!error.remedy().empty()) fmt::print(stderr, "  {}\n", clean(error.remedy()));
}

int exit_code_of(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::kInvalid: return error.code() == "usage" ? 2 : 1;
    case ErrorKind::kDenied: return 3;
    case ErrorKind::kNotFound: return 4;
    case ErrorKind::kConflict: return 5;
    case ErrorKind::kPayment: return 6;
    case ErrorKind::kExhausted:
    case ErrorKind::kUnavailable: return 7;
    case ErrorKind::kUnsupported:
    case ErrorKind::kInternal: return 1;
  }
  return 1;
}

Progress::Progress() : on_terminal_(::isatty(STDERR_FILENO) != 0) {}
Progress::~Progress() {
  clear();
}

void Progress::show(std::string_view text) {
  if (!on_terminal_) return;
  fmt::print(stderr, "\r\033[K{}", clean(text));
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (shown_) fmt::print(stderr, "\r\033[K");
  shown_ = false;
}

}  // namespace autodl::cli
