// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Clock: the only source of time. UTC for what people see, a steady clock (BOOTTIME: it also
// counts suspend) for durations, and the boot id that says whether two steady times compare.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace autodl {

using UtcTime = std::chrono::sys_time<std::chrono::microseconds>;
using SteadyTime = std::chrono::nanoseconds;  // since boot
using Millis = std::chrono::milliseconds;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual UtcTime utc_now() const = 0;
  virtual SteadyTime steady_now() const = 0;
  virtual std::string boot_id() const = 0;
};

class SystemClock final : public Clock {
 public:
  UtcTime utc_now() const override;
  SteadyTime steady_now() const override;
  std::string boot_id() const override;
};

// For tests and simulation: moves only when told.
class ManualClock final : public Clock {
 public:
  UtcTime utc_now() const override { return utc_; }
  SteadyTime steady_now() const override { return steady_; }
  std::string boot_id() const override { return boot_id_; }

  void advance(std::chrono::nanoseconds by) {
    steady_ += by;
    utc_ += std::chrono::duration_cast<std::chrono::microseconds>(by);
  }
  void jump_utc(std::chrono::microseconds by) { utc_ += by; }  // the wall clock was set
  void reboot(std::string boot_id) {
    boot_id_ = std::move(boot_id);
    steady_ = SteadyTime{};
  }

 private:
  UtcTime utc_{std::chrono::seconds{1'800'000'000}};
  SteadyTime steady_{std::chrono::seconds{1'000}};
  std::string boot_id_ = "00000000-0000-4000-8000-000000000001";
};

// RFC 3339 in UTC with microseconds: 2026-12-01T15:58:12.000000Z.
std::string to_rfc3339(UtcTime time);
std::optional<UtcTime> parse_rfc3339(std::string_view text);
inline std::int64_t to_unix_ms(UtcTime time) {
  return std::chrono::duration_cast<Millis>(time.time_since_epoch()).count();
}

}  // namespace autodl
