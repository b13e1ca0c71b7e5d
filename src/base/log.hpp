// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Log lines to stderr: "2026-12-01T15:58:12.000000Z info control: message". Never a secret.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace autodl {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

void set_log_level(LogLevel level);
void set_log_role(std::string_view role);  // "control", "node"; once, at start
void log_line(LogLevel level, std::string_view module, std::string_view message);

template <class... Args>
void log_info(std::string_view module, fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kInfo, module, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warn(std::string_view module, fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kWarn, module, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(std::string_view module, fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kError, module, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_debug(std::string_view module, fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kDebug, module, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace autodl
