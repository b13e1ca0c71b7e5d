/* SPDX-FileCopyrightText: 2026 The autodl authors
 * SPDX-License-Identifier: Apache-2.0
 * The simulated libnvidia-ml.so.1: answers NVML's calls from the state file (state_format.h), read
 * anew at each call, so that what the node or a test writes shows at once. Declarations are our own;
 * names, numbers and sizes are facts of the ABI. It needs no other library (no libc either), so one
 * file serves every image, glibc of any age and musl. What a real driver can't tell on a card is
 * NVML_ERROR_NOT_SUPPORTED here too. */
#include "nvml_abi.h"
#include "state_reader.h"
#include "syscalls.h"

enum { kHangPollMs = 20, kEventPollMs = 50, kEventSetsMax = 16 };

struct device {
  uint32_t index;
};

struct event_set {
  int used;
  uint64_t types[ADLSIM_CARDS_MAX]; /* registered; 0: card not registered */
  uint64_t seen[ADLSIM_CARDS_MAX];  /* xid_count already told */
};

static struct device devices[ADLSIM_CARDS_MAX];
static struct event_set event_sets[kEventSetsMax];
static int event_lock;
static int init_count;

/* --- helpers ----------------------------------------------------------------------------------*/

static int equal(const char* a, const char* b) {
  while (*a != 0 && *a == *b) ++a, ++b;
  return *a == *b;
}

static unsigned length_of(const char* text) {
  unsigned n = 0;
  while (text[n] != 0) ++n;
  return n;
}

static nvml_result give_text(char* out, unsigned size, const char* text) {
  if (out == 0) return kInvalidArgument;
  unsigned n = length_of(text) + 1;
  if (n > size) return kInsufficientSize;
  for (unsigned i = 0; i < n; ++i) out[i] = text[i];
  return kSuccess;
}

static char* put_hex(char* out, uint32_t value, int digits) {
  for (int i = digits - 1; i >= 0; --i) *out++ = "0123456789ABCDEF"[(value >> (4 * i)) & 15];
  return out;
}

static void bus_id(char* out, const struct adlsim_card* card, int domain_digits) {
  out = put_hex(out, card->pci_domain, domain_digits);
  *out++ = ':';
  out = put_hex(out, card->pci_bus, 2);
  *out++ = ':';
  out = put_hex(out, card->pci_device, 2);
  *out++ = '.', *out++ = '0', *out = 0;
}

static nvml_result read_head(struct adlsim_slot_head* head) {
  return adlsim_read_head(adlsim_default_path(), head) == ADLSIM_READ_OK ? kSuccess : kUnknown;
}

static nvml_result read_index(uint32_t index, struct adlsim_card* card) {
  for (;;) {
    switch (adlsim_read_card(adlsim_default_path(), index, card)) {
      case ADLSIM_READ_OK: break;
      case ADLSIM_READ_ABSENT: return kGpuIsLost;
      default: return kUnknown;
    }
    if (card->fault == ADLSIM_CARD_LOST) return kGpuIsLost;
    if (card->fault == ADLSIM_CARD_CRASH) sys_crash();
    if (card->fault != ADLSIM_CARD_HANG) return kSuccess;
    sys_sleep_ms(kHangPollMs);
  }
}

/* What a card is: told as long as it answers at all. */
static nvml_result identity(nvml_device device, struct adlsim_card* card) {
  if (__atomic_load_n(&init_count, __ATOMIC_ACQUIRE) == 0) return kUninitialized;
  if (device < devices || device >= devices + ADLSIM_CARDS_MAX) return kInvalidArgument;
  return read_index(device->index, card);
}

/* What it is doing. */
static nvml_result figures(nvml_device device, struct adlsim_card* card) {
  nvml_result result = identity(device, card);
  return result == kSuccess && card->fault == ADLSIM_CARD_ERROR ? kUnknown : result;
}

static nvml_result give_number(unsigned* out, int64_t value) {
  if (out == 0) return kInvalidArgument;
  if (value < 0) return kNotSupported;
  *out = (unsigned)value;
  return kSuccess;
}

#define CARD(source)                            \
  struct adlsim_card card;                      \
  nvml_result card_result = source(device, &card); \
  if (card_result != kSuccess) return card_result
#define NUMBER(name, source, expression)                \
  EXPORT nvml_result name(nvml_device device, unsigned* out) { \
    CARD(source);                                       \
    return give_number(out, (expression));              \
  }
#define NOT_SUPPORTED(name, ...)                        \
  EXPORT nvml_result name(nvml_device device, ##__VA_ARGS__) { \
    CARD(identity);                                     \
    return kNotSupported;                               \
  }

/* --- library and system -----------------------------------------------------------------------*/

/* Says that the cards are not real; the node's child asks for this symbol. */
EXPORT const char autodlSimulatedDriver[] = "autodl simulated driver";

EXPORT nvml_result nvmlInit_v2(void) {
  struct adlsim_slot_head head;
  for (;;) {
    if (read_head(&head) != kSuccess) return kDriverNotLoaded;
    if (head.driver_fault == ADLSIM_DRIVER_NOT_LOADED) return kDriverNotLoaded;
    if (head.driver_fault == ADLSIM_DRIVER_MISMATCH) return kLibRmVersionMismatch;
    if (head.driver_fault != ADLSIM_DRIVER_HANG) break;
    sys_sleep_ms(kHangPollMs);
  }
  for (uint32_t i = 0; i < ADLSIM_CARDS_MAX; ++i) devices[i].index = i;
  __atomic_add_fetch(&init_count, 1, __ATOMIC_ACQ_REL);
  return kSuccess;
}
EXPORT nvml_result nvmlInit(void) { return nvmlInit_v2(); }
EXPORT nvml_result nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  return nvmlInit_v2();
}
EXPORT nvml_result nvmlShutdown(void) {
  int count = __atomic_load_n(&init_count, __ATOMIC_ACQUIRE);
  do {
    if (count == 0) return kUninitialized;
  } while (!__atomic_compare_exchange_n(&init_count, &count, count - 1, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE));
  return kSuccess;
}

EXPORT const char* nvmlErrorString(nvml_result result) {
  switch (result) {
    case kSuccess: return "Success";
    case kUninitialized: return "Uninitialized";
    case kInvalidArgument: return "Invalid Argument";
    case kNotSupported: return "Not Supported";
    case kNoPermission: return "Insufficient Permissions";
    case kNotFound: return "Not Found";
    case kInsufficientSize: return "Insufficient Size";
    case kDriverNotLoaded: return "Driver Not Loaded";
    case kTimeout: return "Timeout";
    case kGpuIsLost: return "GPU is lost";
    case kLibRmVersionMismatch: return "Driver/library version mismatch";
    case kArgumentVersionMismatch: return "Argument version mismatch";
    default: return "Unknown Error";
  }
}

#define HEAD()                                    \
  struct adlsim_slot_head head;                   \
  if (init_count == 0) return kUninitialized;     \
  if (read_head(&head) != kSuccess) return kUnknown

EXPORT nvml_result nvmlSystemGetDriverVersion(char* out, unsigned size) {
  HEAD();
  return give_text(out, size, head.driver_version);
}
EXPORT nvml_result nvmlSystemGetNVMLVersion(char* out, unsigned size) {
  HEAD();
  return give_text(out, size, head.nvml_version);
}
EXPORT nvml_result nvmlSystemGetCudaDriverVersion_v2(int* out) {
  HEAD();
  if (out == 0) return kInvalidArgument;
  *out = head.cuda_version;
  return kSuccess;
}
EXPORT nvml_result nvmlSystemGetCudaDriverVersion(int* out) {
  return nvmlSystemGetCudaDriverVersion_v2(out);
}
EXPORT nvml_result nvmlSystemGetProcessName(unsigned pid, char* out, unsigned size) {
  if (init_count == 0) return kUninitialized;
  if (out == 0 || size == 0) return kInvalidArgument;
  char path[40] = "/proc/", digits[12], text[256];
  unsigned n = 0, at = 6;
  do digits[n++] = (char)('0' + pid % 10), pid /= 10;
  while (pid != 0);
  while (n > 0) path[at++] = digits[--n];
  const char* rest = "/cmdline";
  for (unsigned i = 0; i < 9; ++i) path[at++] = rest[i];
  int fd = sys_open_read(path);
  if (fd < 0) return kNotFound;
  long bytes = sys_read(fd, text, sizeof text - 1);
  sys_close(fd);
  text[bytes > 0 ? bytes : 0] = 0; /* ends at the first argument's NUL */
  return give_text(out, size, text);
}
EXPORT nvml_result nvmlUnitGetCount(unsigned* out) {
  if (init_count == 0) return kUninitialized;
  return give_number(out, 0);
}

/* --- handles ----------------------------------------------------------------------------------*/

EXPORT nvml_result nvmlDeviceGetCount_v2(unsigned* out) {
  HEAD();
  return give_number(out, head.card_count);
}
EXPORT nvml_result nvmlDeviceGetCount(unsigned* out) { return nvmlDeviceGetCount_v2(out); }

EXPORT nvml_result nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device* out) {
  HEAD();
  if (out == 0 || index >= head.card_count) return kInvalidArgument;
  struct adlsim_card card;
  nvml_result result = read_index(index, &card);
  if (result == kSuccess) *out = &devices[index];
  return result;
}
EXPORT nvml_result nvmlDeviceGetHandleByIndex(unsigned index, nvml_device* out) {
  return nvmlDeviceGetHandleByIndex_v2(index, out);
}

enum { kByUuid, kBySerial, kByBusId };
static nvml_result find_card(int by, const char* text, nvml_device* out) {
  HEAD();
  if (text == 0 || out == 0) return kInvalidArgument;
  for (uint32_t i = 0; i < head.card_count; ++i) {
    struct adlsim_card card;
    char full[20], legacy[20];
    if (adlsim_read_card(adlsim_default_path(), i, &card) != ADLSIM_READ_OK) continue;
    bus_id(full, &card, 8);
    bus_id(legacy, &card, 4);
    int hit = by == kByUuid     ? equal(text, card.uuid)
              : by == kBySerial ? card.serial[0] != 0 && equal(text, card.serial)
                                : equal(text, full) || equal(text, legacy);
    if (!hit) continue;
    nvml_result result = read_index(i, &card);
    if (result == kSuccess) *out = &devices[i];
    return result;
  }
  return kNotFound;
}
EXPORT nvml_result nvmlDeviceGetHandleByUUID(const char* uuid, nvml_device* out) {
  return find_card(kByUuid, uuid, out);
}
EXPORT nvml_result nvmlDeviceGetHandleBySerial(const char* serial, nvml_device* out) {
  return find_card(kBySerial, serial, out);
}
EXPORT nvml_result nvmlDeviceGetHandleByPciBusId_v2(const char* text, nvml_device* out) {
  char upper[20];
  unsigned i = 0;
  if (text == 0) return kInvalidArgument;
  for (; i + 1 < sizeof upper && text[i] != 0; ++i)
    upper[i] = text[i] >= 'a' && text[i] <= 'f' ? (char)(text[i] - 32) : text[i];
  upper[i] = 0;
  return find_card(kByBusId, upper, out);
}
EXPORT nvml_result nvmlDeviceGetHandleByPciBusId(const char* text, nvml_device* out) {
  return nvmlDeviceGetHandleByPciBusId_v2(text, out);
}

/* --- what a card is ---------------------------------------------------------------------------*/

#define TEXT(name, member)                                            \
  EXPORT nvml_result name(nvml_device device, char* out, unsigned size) { \
    CARD(identity);                                                   \
    return card.member[0] == 0 ? kNotSupported : give_text(out, size, card.member); \
  }
TEXT(nvmlDeviceGetName, name)
TEXT(nvmlDeviceGetUUID, uuid)
TEXT(nvmlDeviceGetSerial, serial)
TEXT(nvmlDeviceGetVbiosVersion, vbios)

EXPORT nvml_result nvmlDeviceGetPciInfo_v3(nvml_device device, struct nvml_pci* out) {
  CARD(identity);
  if (out == 0) return kInvalidArgument;
  struct nvml_pci pci = {{0}, card.pci_domain, card.pci_bus, card.pci_device, card.pci_device_id,
                         card.pci_subsystem_id, {0}};
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
EXPORT nvml_result nvmlDeviceGetCpuAffinity(nvml_device device, unsigned words, unsigned long* out) {
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
EXPORT nvml_result nvmlDeviceGetEncoderUtilization(nvml_device device, unsigned* out, unsigned* us) {
  CARD(figures);
  return coder(card.encoder_percent, out, us);
}
EXPORT nvml_result nvmlDeviceGetDecoderUtilization(nvml_device device, unsigned* out, unsigned* us) {
  CARD(figures);
  return coder(card.decoder_percent, out, us);
}
EXPORT nvml_result nvmlDeviceGetPcieThroughput(nvml_device device, int counter, unsigned* out) {
  CARD(figures); /* KB/s; 0 is sent by the card, 1 received */
  return give_number(out, counter == 0 ? card.pcie_tx_kbs : card.pcie_rx_kbs);
}
static nvml_result give_count(uint64_t* out, int64_t value) {
  if (out == 0) return kInvalidArgument;
  if (value < 0) return kNotSupported;
  *out = (uint64_t)value;
  return kSuccess;
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
#define NO_PROCESSES(name)                                                \
  EXPORT nvml_result name(nvml_device device, unsigned* count, void* out) { \
    CARD(figures);                                                        \
    return room(count, 0, out);                                           \
  }
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)

EXPORT nvml_result nvmlDeviceGetProcessUtilization(nvml_device device,
                                                   struct nvml_process_sample* out,
                                                   unsigned* count, uint64_t since_us) {
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
    struct nvml_process_sample to = {(unsigned)from->pid, now_us,
        from->sm_percent < 0 ? 0 : (unsigned)from->sm_percent,
        from->memory_percent < 0 ? 0 : (unsigned)from->memory_percent, 0, 0};
    out[i] = to;
  }
  return result;
}

/* --- events -----------------------------------------------------------------------------------*/

static void lock_events(void) {
  while (__atomic_exchange_n(&event_lock, 1, __ATOMIC_ACQUIRE) != 0) sys_yield();
}
static void unlock_events(void) { __atomic_store_n(&event_lock, 0, __ATOMIC_RELEASE); }
static int is_event_set(const struct event_set* set) {
  return set >= event_sets && set < event_sets + kEventSetsMax && set->used;
}

EXPORT nvml_result nvmlEventSetCreate(struct event_set** out) {
  if (init_count == 0) return kUninitialized;
  if (out == 0) return kInvalidArgument;
  nvml_result result = kUnknown;
  lock_events();
  for (int i = 0; i < kEventSetsMax && result != kSuccess; ++i) {
    if (event_sets[i].used) continue;
    for (uint32_t c = 0; c < ADLSIM_CARDS_MAX; ++c) event_sets[i].types[c] = 0;
    event_sets[i].used = 1;
    *out = &event_sets[i];
    result = kSuccess;
  }
  unlock_events();
  return result;
}
EXPORT nvml_result nvmlEventSetFree(struct event_set* set) {
  if (!is_event_set(set)) return kInvalidArgument;
  lock_events();
  set->used = 0;
  unlock_events();
  return kSuccess;
}
EXPORT nvml_result nvmlDeviceRegisterEvents(nvml_device device, uint64_t types,
                                            struct event_set* set) {
  CARD(identity);
  if (!is_event_set(set)) return kInvalidArgument;
  if ((types & ~(uint64_t)kEventTypesSupported) != 0) return kNotSupported;
  lock_events();
  set->types[device->index] |= types;
  set->seen[device->index] = card.xid_count;
  unlock_events();
  return kSuccess;
}
/* One look at all registered cards. As with the real driver a lost card ends the wait. */
static nvml_result next_event(struct event_set* set, struct nvml_event* out) {
  for (uint32_t i = 0; i < ADLSIM_CARDS_MAX; ++i) {
    struct adlsim_card card;
    if ((set->types[i] & kEventXid) == 0) continue;
    nvml_result result = read_index(i, &card);
    if (result != kSuccess) return result;
    if (card.xid_count == set->seen[i]) continue;
    set->seen[i] = card.xid_count;
    struct nvml_event event = {&devices[i], kEventXid, card.xid, kNone, kNone};
    *out = event;
    return kSuccess;
  }
  return kTimeout;
}
EXPORT nvml_result nvmlEventSetWait_v2(struct event_set* set, struct nvml_event* out, unsigned ms) {
  if (init_count == 0) return kUninitialized;
  if (out == 0 || !is_event_set(set)) return kInvalidArgument;
  for (;;) {
    nvml_result result = next_event(set, out);
    if (result != kTimeout || ms == 0) return result;
    unsigned step = ms < kEventPollMs ? ms : kEventPollMs;
    sys_sleep_ms(step);
    ms -= step;
  }
}
EXPORT nvml_result nvmlEventSetWait(struct event_set* set, struct nvml_event* out, unsigned ms) {
  return nvmlEventSetWait_v2(set, out, ms);
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

/* The compiler may call these for copies and zeroes; there is no libc to bring them. */
HIDDEN void* memcpy(void* to, const void* from, size_t bytes) {
  void* start = to;
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
  return start;
}
HIDDEN void* memset(void* to, int byte, size_t bytes) {
  void* start = to;
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(byte) : "memory");
  return start;
}
