/* SPDX-FileCopyrightText: 2026 The autodl authors
 * SPDX-License-Identifier: Apache-2.0
 * NVML's event sets: an Xid in the state file becomes an event. */
#include "nvml_calls.h"
#include "syscalls.h"

enum { kEventPollMs = 50, kEventSetsMax = 16 };

struct event_set {
  int used;
  uint64_t types[ADLSIM_CARDS_MAX]; /* registered; 0: card not registered */
  uint64_t seen[ADLSIM_CARDS_MAX];  /* xid_count already told */
};
static struct event_set event_sets[kEventSetsMax];
static int event_lock;

static void lock_events(void) {
  while (__atomic_exchange_n(&event_lock, 1, __ATOMIC_ACQUIRE) != 0) sys_yield();
}
static void unlock_events(void) {
  __atomic_store_n(&event_lock, 0, __ATOMIC_RELEASE);
}
static int is_event_set(const struct event_set* set) {
  return set >= event_sets && set < event_sets + kEventSetsMax && set->used;
}

EXPORT nvml_result nvmlEventSetCreate(struct event_set** out) {
  if (nvml_init_count == 0) return kUninitialized;
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
    struct nvml_event event = {&nvml_devices[i], kEventXid, card.xid, kNone, kNone};
    *out = event;
    return kSuccess;
  }
  return kTimeout;
}
EXPORT nvml_result nvmlEventSetWait_v2(struct event_set* set, struct nvml_event* out, unsigned ms) {
  if (nvml_init_count == 0) return kUninitialized;
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
