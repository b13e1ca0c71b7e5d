/* SPDX-FileCopyrightText: 2026 The autodl authors
 * SPDX-License-Identifier: Apache-2.0
 * The part of NVML's ABI that we answer: numbers and layouts, in our own words. */
#ifndef AUTODL_SIM_NVML_ABI_H
#define AUTODL_SIM_NVML_ABI_H

#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define HIDDEN __attribute__((visibility("hidden")))

typedef int nvml_result;
typedef struct device* nvml_device;

enum {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kGpuIsLost = 15,
  kLibRmVersionMismatch = 18,
  kArgumentVersionMismatch = 25,
  kUnknown = 999
};

enum { kEventXid = 0x8, kEventTypesSupported = 0x1f };
#define kNone 0xFFFFFFFFu /* no GPU instance, no compute instance */

struct nvml_pci {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
struct nvml_memory {
  uint64_t total, free, used;
};
struct nvml_memory_v2 {
  unsigned version;
  uint64_t total, reserved, free, used;
};
#define kMemoryV2 ((unsigned)sizeof(struct nvml_memory_v2) | 2u << 24)
struct nvml_rates {
  unsigned gpu, memory;
};
struct nvml_process_v1 {
  unsigned pid;
  uint64_t memory;
};
struct nvml_process { /* _v2 and _v3 of the calls */
  unsigned pid;
  uint64_t memory;
  unsigned gpu_instance, compute_instance;
};
struct nvml_process_sample {
  unsigned pid;
  uint64_t time_us;
  unsigned sm, memory, encoder, decoder;
};
struct nvml_event {
  nvml_device device;
  uint64_t type, data;
  unsigned gpu_instance, compute_instance;
};

#ifdef __cplusplus
#define ABI_ASSERT static_assert
#else
#define ABI_ASSERT _Static_assert
#endif
ABI_ASSERT(sizeof(struct nvml_pci) == 68, "abi");
ABI_ASSERT(sizeof(struct nvml_memory_v2) == 40, "abi");
ABI_ASSERT(sizeof(struct nvml_process) == 24, "abi");
ABI_ASSERT(sizeof(struct nvml_process_sample) == 32, "abi");
ABI_ASSERT(sizeof(struct nvml_event) == 32, "abi");

#endif
