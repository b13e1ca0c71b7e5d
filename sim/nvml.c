/* SPDX-FileCopyrightText: 2026 The autodl authors
 * SPDX-License-Identifier: Apache-2.0
 * The simulated libnvidia-ml.so.1: answers NVML's calls from the state file (state_format.h), read
 * anew at each call, so that what the node or a test writes shows at once. Declarations are our
 * own; names, numbers and sizes are facts of the ABI. It needs no other library (no libc either),
 * so one file serves every image, glibc of any age and musl. What a real driver can't tell on a
 * card is NVML_ERROR_NOT_SUPPORTED here too. */
#include "nvml_calls.h"
#include "syscalls.h"

enum { kHangPollMs = 20 };

struct device nvml_devices[ADLSIM_CARDS_MAX];
int nvml_init_count;

static int equal(const char* a, const char* b) {
  while (*a != 0 && *a == *b) ++a, ++b;
  return *a == *b;
}

static unsigned length_of(const char* text) {
  unsigned n = 0;
  while (text[n] != 0) ++n;
  return n;
}

nvml_result give_text(char* out, unsigned size, const char* text) {
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

void bus_id(char* out, const struct adlsim_card* card, int domain_digits) {
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

nvml_result read_index(uint32_t index, struct adlsim_card* card) {
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

nvml_result identity(nvml_device device, struct adlsim_card* card) {
  if (__atomic_load_n(&nvml_init_count, __ATOMIC_ACQUIRE) == 0) return kUninitialized;
  if (device < nvml_devices || device >= nvml_devices + ADLSIM_CARDS_MAX) return kInvalidArgument;
  return read_index(device->index, card);
}

nvml_result figures(nvml_device device, struct adlsim_card* card) {
  nvml_result result = identity(device, card);
  return result == kSuccess && card->fault == ADLSIM_CARD_ERROR ? kUnknown : result;
}

nvml_result give_number(unsigned* out, int64_t value) {
  if (out == 0) return kInvalidArgument;
  if (value < 0) return kNotSupported;
  *out = (unsigned)value;
  return kSuccess;
}

nvml_result give_count(uint64_t* out, int64_t value) {
  if (out == 0) return kInvalidArgument;
  if (value < 0) return kNotSupported;
  *out = (uint64_t)value;
  return kSuccess;
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
  for (uint32_t i = 0; i < ADLSIM_CARDS_MAX; ++i) nvml_devices[i].index = i;
  __atomic_add_fetch(&nvml_init_count, 1, __ATOMIC_ACQ_REL);
  return kSuccess;
}
EXPORT nvml_result nvmlInit(void) {
  return nvmlInit_v2();
}
EXPORT nvml_result nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  return nvmlInit_v2();
}
EXPORT nvml_result nvmlShutdown(void) {
  int count = __atomic_load_n(&nvml_init_count, __ATOMIC_ACQUIRE);
  do {
    if (count == 0) return kUninitialized;
  } while (!__atomic_compare_exchange_n(&nvml_init_count, &count, count - 1, 0, __ATOMIC_ACQ_REL,
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

#define HEAD()                                     \
  struct adlsim_slot_head head;                    \
  if (nvml_init_count == 0) return kUninitialized; \
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
  if (nvml_init_count == 0) return kUninitialized;
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
  if (nvml_init_count == 0) return kUninitialized;
  return give_number(out, 0);
}

/* --- handles ----------------------------------------------------------------------------------*/

EXPORT nvml_result nvmlDeviceGetCount_v2(unsigned* out) {
  HEAD();
  return give_number(out, head.card_count);
}
EXPORT nvml_result nvmlDeviceGetCount(unsigned* out) {
  return nvmlDeviceGetCount_v2(out);
}

EXPORT nvml_result nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device* out) {
  HEAD();
  if (out == 0 || index >= head.card_count) return kInvalidArgument;
  struct adlsim_card card;
  nvml_result result = read_index(index, &card);
  if (result == kSuccess) *out = &nvml_devices[index];
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
    if (result == kSuccess) *out = &nvml_devices[i];
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
