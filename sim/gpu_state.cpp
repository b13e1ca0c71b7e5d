// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "sim/gpu_state.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

extern "C" {
#include "sim/state_reader.h"
}

namespace autodl::sim {
namespace {

class FileLock {
 public:
  explicit FileLock(int fd) : fd_(fd) {
    while (flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~FileLock() { flock(fd_, LOCK_UN); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_;
};

Error bad_file(const std::string& path) {
  return Error(ErrorKind::kInvalid, "bad_state_file",
               fmt::format("simulated driver: '{}' is no state file of this version", path),
               "remove it; it is made anew at the next start");
}

Error unknown_card(const CardId& card) {
  return Error(ErrorKind::kNotFound, "unknown_card",
               fmt::format("simulated driver: no card '{}'", card.str()));
}

Status write_all(int fd, const void* data, std::size_t bytes, std::size_t offset,
                 const std::string& path) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const auto done = pwrite(fd, at, bytes, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return errno_error(fmt::format("write '{}'", path), done < 0 ? errno : ENOSPC);
    at += done;
    offset += static_cast<std::size_t>(done);
    bytes -= static_cast<std::size_t>(done);
  }
  return {};
}

// The slot goes first, the header that makes it the active one last: a writer killed between the
// two has changed nothing. Page cache of one machine: no order on disk is needed.
Status write_slot(int fd, const Snapshot& snapshot, std::uint64_t sequence,
                  std::uint32_t slot_index, const std::string& path) {
  auto slot = std::make_unique<adlsim_slot>();
  slot->head = snapshot.head;
  slot->head.sequence = sequence;
  slot->head.card_count = static_cast<std::uint32_t>(snapshot.cards.size());
  slot->head.checksum = adlsim_checksum(&slot->head, offsetof(adlsim_slot_head, checksum));
  for (std::size_t i = 0; i < snapshot.cards.size(); ++i) {
    slot->cards[i] = snapshot.cards[i];
    slot->cards[i].sequence = sequence;
    slot->cards[i].checksum = adlsim_checksum(&slot->cards[i], offsetof(adlsim_card, checksum));
  }
  const auto bytes = sizeof(adlsim_slot_head) + snapshot.cards.size() * sizeof(adlsim_card);
  ADL_TRY_STATUS(write_all(fd, slot.get(), bytes,
                           sizeof(adlsim_header) + slot_index * sizeof(adlsim_slot), path));
  adlsim_header header{};
  header.magic = ADLSIM_MAGIC;
  header.version = ADLSIM_VERSION;
  header.header_bytes = sizeof(adlsim_header);
  header.slot_bytes = sizeof(adlsim_slot);
  header.card_bytes = sizeof(adlsim_card);
  header.sequence = sequence;
  header.active = slot_index;
  return write_all(fd, &header, sizeof header, 0, path);
}

bool same_cards(const Snapshot& old, const std::vector<adlsim_card>& cards, const Driver& driver) {
  return driver.version == old.head.driver_version &&
         driver.cuda_version == old.head.cuda_version &&
         std::equal(old.cards.begin(), old.cards.end(), cards.begin(), cards.end(),
                    [](const adlsim_card& a, const adlsim_card& b) {
                      return std::strcmp(a.uuid, b.uuid) == 0 && std::strcmp(a.name, b.name) == 0;
                    });
}

Status write_new(const std::string& path, const std::vector<adlsim_card>& cards,
                 const Driver& driver) {
  Snapshot snapshot;
  fmt::format_to_n(snapshot.head.driver_version, sizeof snapshot.head.driver_version - 1, "{}",
                   driver.version);
  fmt::format_to_n(snapshot.head.nvml_version, sizeof snapshot.head.nvml_version - 1, "12.{}",
                   driver.version);
  snapshot.head.cuda_version = driver.cuda_version;
  snapshot.cards = cards;
  const auto part = fmt::format("{}.new.{}", path, getpid());
  const UniqueFd fd(::open(part.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd.valid()) return errno_error(fmt::format("make '{}'", part), errno);
  const auto fill = [&]() -> Status {
    if (fchmod(fd.get(), 0644) != 0) return errno_error(fmt::format("chmod '{}'", part), errno);
    const auto size = sizeof(adlsim_header) + 2 * sizeof(adlsim_slot);
    if (ftruncate(fd.get(), static_cast<off_t>(size)) != 0)
      return errno_error(fmt::format("size '{}'", part), errno);
    ADL_TRY_STATUS(write_slot(fd.get(), snapshot, 1, 0, part));
    if (rename(part.c_str(), path.c_str()) != 0)
      return errno_error(fmt::format("rename '{}' to '{}'", part, path), errno);
    return {};
  };
  auto status = fill();
  if (!status.ok()) unlink(part.c_str());
  return status;
}

// The value at this load; linear is near enough to look at.
int between(int idle, int full, int percent) {
  return idle + (full - idle) * percent / 100;
}

}  // namespace

void apply_load(adlsim_card& card, int percent, std::int64_t memory_used_bytes) {
  percent = std::clamp(percent, 0, 100);
  const bool busy = percent > 0;
  card.gpu_percent = percent;
  card.memory_percent = percent / 2;
  card.memory_used =
      std::clamp<std::int64_t>(memory_used_bytes, 0, card.memory_total - card.memory_reserved);
  card.temperature_c = between(card.idle_c, 74, percent);
  card.power_mw = between(card.power_idle_mw, card.power_limit_mw / 100 * 95, percent);
  card.sm_mhz = busy ? card.sm_max_mhz - card.sm_max_mhz / 10 : card.sm_idle_mhz;
  card.memory_mhz = busy ? card.memory_max_mhz : card.memory_idle_mhz;
  if (card.fan_percent >= 0) card.fan_percent = busy ? between(30, 80, percent) : 0;
  card.pcie_generation = busy ? card.pcie_max_generation : 1;
  card.pcie_rx_kbs = percent * 12'000;
  card.pcie_tx_kbs = percent * 3'000;
  card.pstate = busy ? 2 : 8;
  card.encoder_percent = 0;
  card.decoder_percent = 0;
}

Result<adlsim_card_fault> parse_card_fault(std::string_view text) {
  constexpr std::array<std::string_view, 5> kNames = {"ok", "lost", "hang", "crash", "error"};
  const auto* found = std::find(kNames.begin(), kNames.end(), text);
  if (found == kNames.end())
    return Error(ErrorKind::kInvalid, "unknown_fault",
                 fmt::format("'{}' is no fault of a card", text),
                 "one of ok lost hang crash error");
  return static_cast<adlsim_card_fault>(found - kNames.begin());
}

Result<Snapshot> GpuState::read(const std::string& path) {
  Snapshot snapshot;
  // A writer may change the set between two cards: all of them must be of one sequence.
  for (int attempt = 0; attempt < 100; ++attempt) {
    snapshot.cards.clear();
    switch (adlsim_read_head(path.c_str(), &snapshot.head)) {
      case ADLSIM_READ_OK: break;
      case ADLSIM_READ_ABSENT:
        return Error(ErrorKind::kNotFound, "no_state_file",
                     fmt::format("simulated driver: can't open '{}'", path));
      default: return bad_file(path);
    }
    bool whole = true;
    for (std::uint32_t i = 0; whole && i < snapshot.head.card_count; ++i) {
      auto& card = snapshot.cards.emplace_back();
      whole = adlsim_read_card(path.c_str(), i, &card) == ADLSIM_READ_OK &&
              card.sequence == snapshot.head.sequence;
    }
    if (whole) return snapshot;
  }
  return bad_file(path);
}

Result<GpuState> GpuState::open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid())
    return errno_error(fmt::format("open the simulated driver's state '{}'", path), errno,
                       errno == ENOENT ? ErrorKind::kNotFound : ErrorKind::kInternal);
  ADL_TRY(snapshot, read(path));
  return GpuState(path, std::move(fd));
}

Result<GpuState> GpuState::create(const std::string& path, const std::vector<adlsim_card>& cards,
                                  const Driver& driver) {
  if (cards.size() > ADLSIM_CARDS_MAX)
    return Error(
        ErrorKind::kInvalid, "too_many_cards",
        fmt::format("simulated driver: {} cards, at most {}", cards.size(), ADLSIM_CARDS_MAX));
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) return errno_error(fmt::format("make the folder of '{}'", path), error.value());
  if (const auto old = read(path); !old.ok() || !same_cards(*old, cards, driver))
    ADL_TRY_STATUS(write_new(path, cards, driver));
  return open(path);
}

Result<Snapshot> GpuState::snapshot() const {
  return read(path_);
}

Status GpuState::change(const std::function<Status(Snapshot&)>& edit) {
  const FileLock lock(fd_.get());
  adlsim_header header{};
  if (pread(fd_.get(), &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header) ||
      header.magic != ADLSIM_MAGIC || header.active > 1)
    return bad_file(path_);
  // Through the descriptor and not the path: that may name a newer file by now.
  ADL_TRY(snapshot, read(fmt::format("/proc/self/fd/{}", fd_.get())));
  ADL_TRY_STATUS(edit(snapshot));
  if (snapshot.cards.size() > ADLSIM_CARDS_MAX)
    return Error(ErrorKind::kInvalid, "too_many_cards", "simulated driver: too many cards");
  return write_slot(fd_.get(), snapshot, header.sequence + 1, 1 - header.active, path_);
}

Status GpuState::change_card(const CardId& card, const std::function<Status(adlsim_card&)>& edit) {
  return change([&](Snapshot& snapshot) -> Status {
    for (auto& candidate : snapshot.cards)
      if (card.str() == candidate.uuid) return edit(candidate);
    return unknown_card(card);
  });
}

Status GpuState::set_load(const CardId& card, int percent, std::int64_t memory_used_bytes) {
  return change_card(card, [&](adlsim_card& found) -> Status {
    apply_load(found, percent, memory_used_bytes);
    return {};
  });
}

Status GpuState::set_processes(const CardId& card, const std::vector<adlsim_process>& processes) {
  return change_card(card, [&](adlsim_card& found) -> Status {
    const auto count = std::min<std::size_t>(processes.size(), ADLSIM_PROCESSES_MAX);
    std::copy_n(processes.begin(), count, found.processes);
    found.process_count = static_cast<std::uint32_t>(count);
    return {};
  });
}

Status GpuState::set_fault(const CardId& card, adlsim_card_fault fault) {
  return change_card(card, [&](adlsim_card& found) -> Status {
    found.fault = fault;
    return {};
  });
}

Status GpuState::set_driver_fault(adlsim_driver_fault fault) {
  return change([&](Snapshot& snapshot) -> Status {
    snapshot.head.driver_fault = fault;
    return {};
  });
}

Status GpuState::raise_xid(const CardId& card, std::uint32_t xid) {
  return change_card(card, [&](adlsim_card& found) -> Status {
    found.xid = xid;
    ++found.xid_count;
    if (xid == 79) found.fault = ADLSIM_CARD_LOST;
    return {};
  });
}

Status GpuState::set_figure(const CardId& card, std::string_view figure, int value) {
  struct Figure {
    std::string_view name;
    std::int32_t adlsim_card::* member;
  };
  static constexpr std::array kFigures = {Figure{"temperature", &adlsim_card::temperature_c},
                                          Figure{"power_mw", &adlsim_card::power_mw},
                                          Figure{"fan", &adlsim_card::fan_percent},
                                          Figure{"sm_mhz", &adlsim_card::sm_mhz},
                                          Figure{"memory_mhz", &adlsim_card::memory_mhz},
                                          Figure{"pstate", &adlsim_card::pstate},
                                          Figure{"gpu_percent", &adlsim_card::gpu_percent},
                                          Figure{"minor", &adlsim_card::minor},
                                          Figure{"memory_percent", &adlsim_card::memory_percent},
                                          Figure{"pcie_generation", &adlsim_card::pcie_generation}};
  return change_card(card, [&](adlsim_card& found) -> Status {
    for (const auto& candidate : kFigures) {
      if (candidate.name != figure) continue;
      found.*candidate.member = value;
      return {};
    }
    return Error(ErrorKind::kInvalid, "unknown_figure",
                 fmt::format("'{}' is no figure of a card that can be set", figure));
  });
}

}  // namespace autodl::sim
