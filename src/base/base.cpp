// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The small implementations of base: too short for a file each.
#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/crash_point.hpp"
#include "base/ids.hpp"
#include "base/log.hpp"
#include "base/random.hpp"
#include "base/unique_fd.hpp"

namespace autodl {

void assertion_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "assertion failed: %s (%s:%d)\n", expression, file, line);
  std::abort();
}

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

// ---- time

UtcTime SystemClock::utc_now() const {
  return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

SteadyTime SystemClock::steady_now() const {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

std::string SystemClock::boot_id() const {
  char buffer[64] = {};
  UniqueFd fd(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  const auto got = ::read(fd.get(), buffer, sizeof buffer - 1);
  std::string text(buffer, got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string to_rfc3339(UtcTime time) {
  const auto days = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{days};
  const auto of_day = (time - days).count();
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     of_day / 3'600'000'000, of_day / 60'000'000 % 60, of_day / 1'000'000 % 60,
                     of_day % 1'000'000);
}

namespace {
bool parse_digits(std::string_view text, std::size_t at, std::size_t count, int& out) {
  if (at + count > text.size()) return false;
  const char* first = text.data() + at;
  const auto result = std::from_chars(first, first + count, out);
  return result.ec == std::errc{} && result.ptr == first + count && *first != '-';
}
}  // namespace

std::optional<UtcTime> parse_rfc3339(std::string_view text) {
  int year{}, month{}, day{}, hour{}, minute{}, second{};
  if (text.size() < 20 || text.size() > 32) return std::nullopt;
  if (!parse_digits(text, 0, 4, year) || text[4] != '-' || !parse_digits(text, 5, 2, month) ||
      text[7] != '-' || !parse_digits(text, 8, 2, day) || (text[10] != 'T' && text[10] != 't') ||
      !parse_digits(text, 11, 2, hour) || text[13] != ':' || !parse_digits(text, 14, 2, minute) ||
      text[16] != ':' || !parse_digits(text, 17, 2, second))
    return std::nullopt;
  std::int64_t micros = 0;
  std::size_t at = 19;
  if (text[at] == '.') {
    std::int64_t scale = 100'000;
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, scale /= 10)
      micros += (text[at] - '0') * scale;
  }
  if (at + 1 != text.size() || (text[at] != 'Z' && text[at] != 'z')) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{year},
                                         std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  return UtcTime{std::chrono::sys_days{date}} + std::chrono::hours{hour} +
         std::chrono::minutes{minute} + std::chrono::seconds{second} +
         std::chrono::microseconds{micros};
}

// ---- random and ids

void SystemRandom::fill(std::span<unsigned char> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto got = ::getrandom(bytes.data() + done, bytes.size() - done, 0);
    if (got < 0 && errno == EINTR) continue;
    ADL_ASSERT(got > 0);
    done += static_cast<std::size_t>(got);
  }
}

void SeededRandom::fill(std::span<unsigned char> bytes) {
  for (auto& byte : bytes) byte = static_cast<unsigned char>(engine_() >> 56);
}

std::uint64_t Random::next_u64() {
  unsigned char bytes[8];
  fill(bytes);
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

std::uint64_t Random::below(std::uint64_t bound) {
  ADL_ASSERT(bound > 0);
  // Rejection keeps it uniform: the tail that does not divide evenly is drawn again.
  const std::uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  for (;;) {
    if (const auto value = next_u64(); value < limit) return value % bound;
  }
}

std::string Random::hex(std::size_t count) {
  std::string bytes(count, '\0');
  fill({reinterpret_cast<unsigned char*>(bytes.data()), count});
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

namespace {
constexpr std::string_view kCrockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
constexpr std::size_t kUlidTimeLength = 10;
constexpr std::size_t kUlidLength = 26;
}  // namespace

std::string UlidGenerator::next() {
  auto ms = static_cast<std::uint64_t>(to_unix_ms(clock_.utc_now()));
  std::string text(kUlidLength, '0');
  for (std::size_t i = kUlidTimeLength; i-- > 0; ms >>= 5) text[i] = kCrockford[ms & 31];
  if (!last_.empty() && last_.compare(0, kUlidTimeLength, text, 0, kUlidTimeLength) >= 0) {
    // Same millisecond, or a clock set back: count up from the last, so that order holds.
    text = last_;
    for (std::size_t i = kUlidLength; i-- > 0;) {
      const auto digit = kCrockford.find(text[i]);
      if (digit + 1 < kCrockford.size()) {
        text[i] = kCrockford[digit + 1];
        break;
      }
      text[i] = '0';
    }
  } else {
    for (std::size_t i = kUlidTimeLength; i < kUlidLength; ++i)
      text[i] = kCrockford[random_.below(32)];
  }
  return last_ = text;
}

bool is_ulid(std::string_view text) {
  return text.size() == kUlidLength && text.front() <= '7' &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return kCrockford.find(c) != std::string_view::npos; });
}

// ---- log

namespace {
std::atomic<LogLevel> g_log_level{LogLevel::kInfo};
std::string g_log_role;  // written once at start, before threads
}  // namespace

void set_log_level(LogLevel level) {
  g_log_level = level;
}
void set_log_role(std::string_view role) {
  g_log_role = role;
}

void log_line(LogLevel level, std::string_view module, std::string_view message) {
  if (level < g_log_level.load(std::memory_order_relaxed)) return;
  constexpr const char* kNames[] = {"debug", "info", "warn", "error"};
  // A log line is one line: what came from outside may hold control characters.
  std::string clean;
  for (const char c : message) {
    if (c == '\n')
      clean += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      clean += '?';
    else
      clean += c;
  }
  const auto line = fmt::format("{} {} {}{}{}: {}\n", to_rfc3339(SystemClock{}.utc_now()),
                                kNames[static_cast<int>(level)], g_log_role,
                                g_log_role.empty() ? "" : "/", module, clean);
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

// ---- crash points

void crash_point(const char* name) {
  static const char* const armed = std::getenv("AUTODL_CRASH_AT");
  if (armed == nullptr) return;
  const std::string_view spec(armed);
  const auto colon = spec.find(':');
  if (spec.substr(0, colon) != name) return;
  static std::atomic<int> passages{0};
  int wanted = 1;
  if (colon != std::string_view::npos) wanted = std::atoi(armed + colon + 1);
  if (++passages == wanted) ::kill(::getpid(), SIGKILL);
}

}  // namespace autodl
