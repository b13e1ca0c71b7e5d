/* SPDX-FileCopyrightText: 2026 The autodl authors
 * SPDX-License-Identifier: Apache-2.0
 * The simulated driver's state: one file, one writer at a time (flock), any number of readers.
 *
 *   header (64 bytes) | slot 0 | slot 1          slot = head (256 bytes) + ADLSIM_CARDS_MAX cards
 *
 * The header names the active slot. A writer fills the other slot, then flips `active`: whatever
 * moment it is killed at, the active slot is whole. A reader that was too slow sees a checksum or
 * sequence that doesn't fit and reads again. The file never changes its size and is written in
 * place, so that it can be bind-mounted into an instance. Little endian. In every number -1 means
 * "the driver can't tell" (NVML_ERROR_NOT_SUPPORTED). A changed layout gets a new version. */
#ifndef AUTODL_SIM_STATE_FORMAT_H
#define AUTODL_SIM_STATE_FORMAT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define ADLSIM_ASSERT(condition, text) static_assert(condition, text)
#define ADLSIM_WORDS(data) static_cast<const uint64_t*>(data)
#else
#define ADLSIM_ASSERT(condition, text) _Static_assert(condition, text)
#define ADLSIM_WORDS(data) (data)
#endif

#define ADLSIM_MAGIC 0x31304d49534c4441ULL /* "ADLSIM01" */
#define ADLSIM_VERSION 1u
#define ADLSIM_CARDS_MAX 32u
#define ADLSIM_PROCESSES_MAX 32u

/* Where readers look, in this order: $AUTODL_SIM_STATE, inside an instance, on the host. */
#define ADLSIM_ENV "AUTODL_SIM_STATE"
#define ADLSIM_PATH_INSTANCE "/run/autodl-nvidia/state"
#define ADLSIM_PATH_HOST "/run/autodl-sim/state"

enum adlsim_card_fault {
  ADLSIM_CARD_OK = 0,
  ADLSIM_CARD_LOST = 1,  /* every call on the card: GPU is lost (Xid 79) */
  ADLSIM_CARD_HANG = 2,  /* calls on the card block until the fault is taken back */
  ADLSIM_CARD_CRASH = 3, /* calls on the card kill the calling process (SIGSEGV) */
  ADLSIM_CARD_ERROR = 4  /* calls that read figures: Unknown Error; the card is still listed */
};

enum adlsim_driver_fault {
  ADLSIM_DRIVER_OK = 0,
  ADLSIM_DRIVER_NOT_LOADED = 1, /* nvmlInit: Driver Not Loaded */
  ADLSIM_DRIVER_MISMATCH = 2,   /* nvmlInit: Driver/library version mismatch */
  ADLSIM_DRIVER_HANG = 3        /* nvmlInit blocks until the fault is taken back */
};

struct adlsim_process {
  int64_t pid;
  int64_t memory_bytes;
  int32_t sm_percent;
  int32_t memory_percent;
};

struct adlsim_card {
  uint64_t sequence; /* of the slot: guards against a half-read card */
  char name[96];
  char uuid[48];
  char serial[32]; /* empty: not supported */
  char vbios[32];
  uint32_t pci_domain, pci_bus, pci_device;
  uint32_t pci_device_id, pci_subsystem_id; /* device << 16 | vendor */
  int32_t minor;                            /* of /dev/nvidia<minor> */
  int32_t brand, architecture, cc_major, cc_minor, cores;
  int32_t fault; /* enum adlsim_card_fault */
  int64_t memory_total, memory_reserved;
  int64_t memory_used; /* of programs, without the reserved part */
  int32_t gpu_percent, memory_percent, encoder_percent, decoder_percent;
  int32_t temperature_c, slowdown_c, shutdown_c, fan_percent;
  int32_t power_mw, power_limit_mw, power_idle_mw;
  int32_t sm_mhz, sm_max_mhz, sm_idle_mhz, memory_mhz, memory_max_mhz, memory_idle_mhz;
  int32_t pcie_generation, pcie_max_generation, pcie_width, pcie_rx_kbs, pcie_tx_kbs;
  int32_t pstate, ecc_mode, mig_mode, idle_c;
  int64_t energy_mj;
  uint64_t xid_count; /* grows with each Xid; event sets wait for it */
  uint32_t xid, process_count;
  struct adlsim_process processes[ADLSIM_PROCESSES_MAX];
  uint64_t reserved[8];
  uint64_t checksum; /* FNV-1a over the 64-bit words before it */
};

struct adlsim_slot_head {
  uint64_t sequence;
  uint32_t card_count;
  int32_t driver_fault; /* enum adlsim_driver_fault */
  char driver_version[64];
  char nvml_version[64];
  int32_t cuda_version; /* 12040 */
  uint32_t padding;
  uint64_t reserved[12];
  uint64_t checksum;
};

struct adlsim_slot {
  struct adlsim_slot_head head;
  struct adlsim_card cards[ADLSIM_CARDS_MAX];
};

struct adlsim_header {
  uint64_t magic;
  uint32_t version;
  uint32_t header_bytes, slot_bytes, card_bytes;
  uint64_t sequence;
  uint32_t active; /* 0 or 1 */
  uint32_t padding;
  uint64_t reserved[3];
};

ADLSIM_ASSERT(sizeof(struct adlsim_header) == 64, "layout");
ADLSIM_ASSERT(sizeof(struct adlsim_slot_head) == 256, "layout");
ADLSIM_ASSERT(sizeof(struct adlsim_process) == 24, "layout");
ADLSIM_ASSERT(sizeof(struct adlsim_card) % 8 == 0, "layout");

/* Over whole 64-bit words. */
static inline uint64_t adlsim_checksum(const void* data, uint64_t bytes) {
  const uint64_t* words = ADLSIM_WORDS(data);
  uint64_t sum = 0xcbf29ce484222325ULL;
  for (uint64_t i = 0; i < bytes / 8; ++i) sum = (sum ^ words[i]) * 0x100000001b3ULL;
  return sum;
}

#ifdef __cplusplus
}
#endif
#endif
