/* SPDX-FileCopyrightText: 2026 The autodl authors
 * SPDX-License-Identifier: Apache-2.0
 * NVML's calls on one card. */
#include "nvml_calls.h"
#include "syscalls.h"

/* --- what a card is ---------------------------------------------------------------------------*/

#define TEXT(name, member)                                                          \
  EXPORT nvml_result name(nvml_device device, char* out, unsigned size) {           \
    CARD(identity);                                                                 \
    return card.member[0] == 0 ? kNotSupported : give_text(out, size, card.member); \
  }
TEXT(nvmlDeviceGetName, name)
TEXT(nvmlDeviceGetUUID, uuid)
TEXT(nvmlDeviceGetSerial, serial)
TEXT(nvmlDeviceGetVbiosVersion, vbios)

EXPORT nvml_result nvmlDeviceGetPciInfo_v3(nvml_device device, struct nvml_pci* out) {
  CARD(identity);
  if (out == 0) return kInvalidArgument;
  struct nvml_pci pci = {{0},
                         card.pci_domain,
                         card.pci_bus,
                         card.pci_device,
                         card.pci_device_id,
                         card.pci_subsystem_id,
                         {0}};
  bus_id(pci.bus_id_legacy, &card, 4);
  bus_id(pci.bus_id, &card, 8);
  *out = pci;
  return kSuccess;
}
EXPORT nvml_result nvmlDeviceGetPciInfo_v2(nvml_device device, struct nvml_pci* out) {
  return nvmlDeviceGetPciInfo_v3(device, out);
}
EXPORT nvml_result nvmlDeviceGetPciInfo(nvml_device device, struct nvml_pci* out) {
  return nvmlDeviceGetPciInfo_v3(device, out);
}
EXPORT nvml_result nvmlDeviceGetCudaComputeCapability(nvml_device device, int* major, int* minor) {
  CARD(identity);
  if (major == 0 || minor == 0) return kInvalidArgument;
  *major = card.cc_major;
  *minor = card.cc_minor;
  return kSuccess;
}
NUMBER(nvmlDeviceGetIndex, identity, device->index)
NUMBER(nvmlDeviceGetMinorNumber, identity, card.minor)
NUMBER(nvmlDeviceGetBrand, identity, card.brand)
NUMBER(nvmlDeviceGetArchitecture, identity, card.architecture)
NUMBER(nvmlDeviceGetNumGpuCores, identity, card.cores)
NUMBER(nvmlDeviceGetNumFans, identity, card.fan_percent < 0 ? 0 : 1)
NUMBER(nvmlDeviceGetMultiGpuBoard, identity, 0)
NUMBER(nvmlDeviceGetDisplayActive, identity, 0)
NUMBER(nvmlDeviceGetDisplayMode, identity, 0)
NUMBER(nvmlDeviceGetPersistenceMode, identity, 1)
NUMBER(nvmlDeviceGetComputeMode, identity, 0)
NUMBER(nvmlDeviceGetMaxMigDeviceCount, identity, 0)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, identity, card.pcie_max_generation)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, identity, card.pcie_width)
EXPORT nvml_result nvmlDeviceGetMigMode(nvml_device device, unsigned* now, unsigned* pending) {
  CARD(identity);
  nvml_result result = give_number(now, card.mig_mode);
  return result == kSuccess ? give_number(pending, card.mig_mode) : result;
}
EXPORT nvml_result nvmlDeviceGetEccMode(nvml_device device, unsigned* now, unsigned* pending) {
  CARD(identity);
  nvml_result result = give_number(now, card.ecc_mode);
  return result == kSuccess ? give_number(pending, card.ecc_mode) : result;
}
EXPORT nvml_result nvmlDeviceGetCpuAffinity(nvml_device device, unsigned words,
                                            unsigned long* out) {
  CARD(identity);
  if (out == 0) return kInvalidArgument;
  for (unsigned i = 0; i < words; ++i) out[i] = 0;
  sys_affinity(out, words * sizeof *out); /* simulated cards are near to every core we may use */
  return kSuccess;
}

/* --- what a card is doing ---------------------------------------------------------------------*/

NUMBER(nvmlDeviceGetPowerUsage, figures, card.power_mw)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, figures, card.power_limit_mw)
NUMBER(nvmlDeviceGetPowerManagementLimit, figures, card.power_limit_mw)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, figures, card.power_limit_mw)
NUMBER(nvmlDeviceGetPowerManagementMode, figures, card.power_limit_mw < 0 ? -1 : 1)
NUMBER(nvmlDeviceGetPerformanceState, figures, card.pstate)
NUMBER(nvmlDeviceGetPowerState, figures, card.pstate)
NUMBER(nvmlDeviceGetFanSpeed, figures, card.fan_percent)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, figures, card.pcie_generation)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, figures, card.pcie_width)

EXPORT nvml_result nvmlDeviceGetFanSpeed_v2(nvml_device device, unsigned fan, unsigned* out) {
  if (fan != 0) return kInvalidArgument;
  return nvmlDeviceGetFanSpeed(device, out);
}
EXPORT nvml_result nvmlDeviceGetTemperature(nvml_device device, int sensor, unsigned* out) {
  CARD(figures);
  return sensor != 0 ? kInvalidArgument : give_number(out, card.temperature_c);
}
EXPORT nvml_result nvmlDeviceGetTemperatureThreshold(nvml_device device, int type, unsigned* out) {
  CARD(figures);
  return give_number(out, type == 0 ? card.shutdown_c : type == 1 ? card.slowdown_c : -1);
}
/* Clocks: 0 graphics, 1 SM, 2 memory, 3 video. */
EXPORT nvml_result nvmlDeviceGetClockInfo(nvml_device device, int type, unsigned* out) {
  CARD(figures);
  if (type < 0 || type > 3) return kInvalidArgument;
  return give_number(out, type == 2 ? card.memory_mhz : card.sm_mhz);
}
EXPORT nvml_result nvmlDeviceGetMaxClockInfo(nvml_device device, int type, unsigned* out) {
  CARD(figures);
  if (type < 0 || type > 3) return kInvalidArgument;
  return give_number(out, type == 2 ? card.memory_max_mhz : card.sm_max_mhz);
}
EXPORT nvml_result nvmlDeviceGetClock(nvml_device device, int type, int which, unsigned* out) {
  return which == 0 ? nvmlDeviceGetClockInfo(device, type, out)
                    : nvmlDeviceGetMaxClockInfo(device, type, out);
}
EXPORT nvml_result nvmlDeviceGetUtilizationRates(nvml_device device, struct nvml_rates* out) {
  CARD(figures);
  if (out == 0) return kInvalidArgument;
  if (card.gpu_percent < 0) return kNotSupported;
  out->gpu = (unsigned)card.gpu_percent;
  out->memory = card.memory_percent < 0 ? 0 : (unsigned)card.memory_percent;
  return kSuccess;
}
static nvml_result coder(int32_t percent, unsigned* out, unsigned* period_us) {
  nvml_result result = give_number(out, percent);
  return result == kSuccess ? give_number(period_us, 167000) : result;
}
EXPORT nvml_result nvmlDeviceGetEncoderUtilization(nvml_device device, unsigned* out,
                                                   unsigned* us) {
  CARD(figures);
  return coder(card.encoder_percent, out, us);
}
EXPORT nvml_result nvmlDeviceGetDecoderUtilization(nvml_device device, unsigned* out,
                                                   unsigned* us) {
  CARD(figures);
  return coder(card.decoder_percent, out, us);
}
EXPORT nvml_result nvmlDeviceGetPcieThroughput(nvml_device device, int counter, unsigned* out) {
  CARD(figures); /* KB/s; 0 is sent by the card, 1 received */
  return give_number(out, counter == 0 ? card.pcie_tx_kbs : card.pcie_rx_kbs);
}
EXPORT nvml_result nvmlDeviceGetTotalEnergyConsumption(nvml_device device, uint64_t* out) {
  CARD(figures);
  return give_count(out, card.energy_mj);
}
EXPORT nvml_result nvmlDeviceGetTotalEccErrors(nvml_device device, int type, int counter,
                                               uint64_t* out) {
  (void)type, (void)counter;
  CARD(figures);
  return give_count(out, card.ecc_mode < 0 ? -1 : 0);
}
EXPORT nvml_result nvmlDeviceGetSupportedEventTypes(nvml_device device, uint64_t* out) {
  CARD(identity);
  return give_count(out, kEventTypesSupported);
}
EXPORT nvml_result nvmlDeviceGetCurrentClocksThrottleReasons(nvml_device device, uint64_t* out) {
  CARD(figures);
  return give_count(out, card.gpu_percent == 0 ? 1 : 0); /* 1: idle */
}
EXPORT nvml_result nvmlDeviceGetCurrentClocksEventReasons(nvml_device device, uint64_t* out) {
  return nvmlDeviceGetCurrentClocksThrottleReasons(device, out);
}
EXPORT nvml_result nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory* out) {
  CARD(figures); /* of old: used has the driver's own part in it */
  if (out == 0) return kInvalidArgument;
  if (card.memory_used < 0) return kNotSupported;
  out->total = (uint64_t)card.memory_total;
  out->used = (uint64_t)(card.memory_used + card.memory_reserved);
  out->free = out->total - out->used;
  return kSuccess;
}
EXPORT nvml_result nvmlDeviceGetMemoryInfo_v2(nvml_device device, struct nvml_memory_v2* out) {
  CARD(figures);
  if (out == 0) return kInvalidArgument;
  if (out->version != kMemoryV2) return kArgumentVersionMismatch;
  if (card.memory_used < 0) return kNotSupported;
  out->total = (uint64_t)card.memory_total;
  out->reserved = (uint64_t)card.memory_reserved;
  out->used = (uint64_t)card.memory_used;
  out->free = out->total - out->used - out->reserved;
  return kSuccess;
}

/* --- processes --------------------------------------------------------------------------------*/

static nvml_result room(unsigned* count, unsigned have, const void* out) {
  if (count == 0) return kInvalidArgument;
  unsigned given = *count;
  *count = have;
  return given < have || (have > 0 && out == 0) ? kInsufficientSize : kSuccess;
}
EXPORT nvml_result nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned* count,
                                                           struct nvml_process* out) {
  CARD(figures);
  nvml_result result = room(count, card.process_count, out);
  for (uint32_t i = 0; result == kSuccess && i < card.process_count; ++i) {
    const struct adlsim_process* from = &card.processes[i];
    struct nvml_process to = {(unsigned)from->pid, (uint64_t)from->memory_bytes, kNone, kNone};
    out[i] = to;
  }
  return result;
}
EXPORT nvml_result nvmlDeviceGetComputeRunningProcesses_v2(nvml_device device, unsigned* count,
                                                           struct nvml_process* out) {
  return nvmlDeviceGetComputeRunningProcesses_v3(device, count, out);
}
EXPORT nvml_result nvmlDeviceGetComputeRunningProcesses(nvml_device device, unsigned* count,
                                                        struct nvml_process_v1* out) {
  CARD(figures);
  nvml_result result = room(count, card.process_count, out);
  for (uint32_t i = 0; result == kSuccess && i < card.process_count; ++i) {
    out[i].pid = (unsigned)card.processes[i].pid;
    out[i].memory = (uint64_t)card.processes[i].memory_bytes;
  }
  return result;
}
/* A simulated card runs no graphics and no MPS: none, in every version of the call. */
#define NO_PROCESSES(name)                                                  \
  EXPORT nvml_result name(nvml_device device, unsigned* count, void* out) { \
    CARD(figures);                                                          \
    return room(count, 0, out);                                             \
  }
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)

EXPORT nvml_result nvmlDeviceGetProcessUtilization(nvml_device device,
                                                   struct nvml_process_sample* out, unsigned* count,
                                                   uint64_t since_us) {
  CARD(figures);
  struct sys_time now = sys_clock(0);
  uint64_t now_us = (uint64_t)now.seconds * 1000000 + (uint64_t)now.nanoseconds / 1000;
  if (card.process_count == 0 || now_us <= since_us) {
    if (count != 0) *count = 0;
    return kNotFound;
  }
  nvml_result result = room(count, card.process_count, out);
  for (uint32_t i = 0; result == kSuccess && i < card.process_count; ++i) {
    const struct adlsim_process* from = &card.processes[i];
    struct nvml_process_sample to = {(unsigned)from->pid,
                                     now_us,
                                     from->sm_percent < 0 ? 0 : (unsigned)from->sm_percent,
                                     from->memory_percent < 0 ? 0 : (unsigned)from->memory_percent,
                                     0,
                                     0};
    out[i] = to;
  }
  return result;
}

/* --- what no simulated card has ---------------------------------------------------------------*/

NOT_SUPPORTED(nvmlDeviceGetNvLinkState, unsigned link, int* out)
NOT_SUPPORTED(nvmlDeviceGetNvLinkRemotePciInfo_v2, unsigned link, struct nvml_pci* out)
NOT_SUPPORTED(nvmlDeviceGetSupportedMemoryClocks, unsigned* count, unsigned* out)
NOT_SUPPORTED(nvmlDeviceGetSupportedGraphicsClocks, unsigned mhz, unsigned* count, unsigned* out)
NOT_SUPPORTED(nvmlDeviceGetApplicationsClock, int type, unsigned* out)
NOT_SUPPORTED(nvmlDeviceSetApplicationsClocks, unsigned memory, unsigned graphics)
NOT_SUPPORTED(nvmlDeviceResetApplicationsClocks)
NOT_SUPPORTED(nvmlDeviceGetAttributes_v2, void* out)
NOT_SUPPORTED(nvmlDeviceGetAccountingMode, int* out)
NOT_SUPPORTED(nvmlDeviceGetBoardId, unsigned* out)
NOT_SUPPORTED(nvmlDeviceGetGpuInstanceId, unsigned* out)
NOT_SUPPORTED(nvmlDeviceGetComputeInstanceId, unsigned* out)
EXPORT nvml_result nvmlDeviceGetMigDeviceHandleByIndex(nvml_device device, unsigned index,
                                                       nvml_device* out) {
  (void)index, (void)out;
  CARD(identity);
  return kNotFound;
}
EXPORT nvml_result nvmlDeviceIsMigDeviceHandle(nvml_device device, unsigned* out) {
  CARD(identity);
  return give_number(out, 0);
}
