/* SPDX-FileCopyrightText: 2026 The autodl authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "state_reader.h"

#include "syscalls.h"

/* The libc of the program, whichever it is, exports it; no libc, no variable. */
extern char** environ __attribute__((weak));

/* A reader that loses this many races against a writer gives up: the file is then damaged. */
enum { kAttempts = 200 };

static const char* env_path(void) {
  if (&environ == 0 || environ == 0) return 0;
  const char* name = ADLSIM_ENV;
  for (char** entry = environ; *entry != 0; ++entry) {
    size_t i = 0;
    while (name[i] != 0 && (*entry)[i] == name[i]) ++i;
    if (name[i] == 0 && (*entry)[i] == '=' && (*entry)[i + 1] != 0) return *entry + i + 1;
  }
  return 0;
}

const char* adlsim_default_path(void) {
  const char* path = env_path();
  if (path != 0) return path;
  return sys_access(ADLSIM_PATH_INSTANCE) == 0 ? ADLSIM_PATH_INSTANCE : ADLSIM_PATH_HOST;
}

static int header_is_ours(const struct adlsim_header* header) {
  return header->magic == ADLSIM_MAGIC && header->version == ADLSIM_VERSION &&
         header->header_bytes == sizeof(struct adlsim_header) &&
         header->slot_bytes == sizeof(struct adlsim_slot) &&
         header->card_bytes == sizeof(struct adlsim_card) && header->active <= 1;
}

static int read_head(int fd, struct adlsim_slot_head* head, uint64_t* slot_offset) {
  struct adlsim_header header;
  if (sys_pread(fd, &header, sizeof header, 0) != (long)sizeof header) return 0;
  if (!header_is_ours(&header)) return 0;
  *slot_offset = sizeof header + header.active * sizeof(struct adlsim_slot);
  if (sys_pread(fd, head, sizeof *head, *slot_offset) != (long)sizeof *head) return 0;
  if (head->checksum != adlsim_checksum(head, offsetof(struct adlsim_slot_head, checksum)))
    return 0;
  if (head->card_count > ADLSIM_CARDS_MAX) return 0;
  head->driver_version[sizeof head->driver_version - 1] = 0;
  head->nvml_version[sizeof head->nvml_version - 1] = 0;
  return 1;
}

int adlsim_read_head(const char* path, struct adlsim_slot_head* head) {
  int fd = sys_open_read(path);
  if (fd < 0) return ADLSIM_READ_ABSENT;
  uint64_t offset;
  int ok = 0;
  for (int i = 0; i < kAttempts && !ok; ++i) {
    ok = read_head(fd, head, &offset);
    if (!ok) sys_yield();
  }
  sys_close(fd);
  return ok ? ADLSIM_READ_OK : ADLSIM_READ_BAD;
}

static int read_card(int fd, uint32_t index, struct adlsim_card* card, int* absent) {
  struct adlsim_slot_head head;
  uint64_t offset;
  if (!read_head(fd, &head, &offset)) return 0;
  *absent = index >= head.card_count;
  if (*absent) return 1;
  offset += sizeof head + (uint64_t)index * sizeof *card;
  if (sys_pread(fd, card, sizeof *card, offset) != (long)sizeof *card) return 0;
  if (card->sequence != head.sequence) return 0;
  return card->checksum == adlsim_checksum(card, offsetof(struct adlsim_card, checksum));
}

int adlsim_read_card(const char* path, uint32_t index, struct adlsim_card* card) {
  int fd = sys_open_read(path);
  if (fd < 0) return ADLSIM_READ_ABSENT;
  int ok = 0, absent = 0;
  for (int i = 0; i < kAttempts && !ok; ++i) {
    ok = read_card(fd, index, card, &absent);
    if (!ok) sys_yield();
  }
  sys_close(fd);
  if (!ok) return ADLSIM_READ_BAD;
  if (absent) return ADLSIM_READ_ABSENT;
  card->name[sizeof card->name - 1] = 0;
  card->uuid[sizeof card->uuid - 1] = 0;
  card->serial[sizeof card->serial - 1] = 0;
  card->vbios[sizeof card->vbios - 1] = 0;
  if (card->process_count > ADLSIM_PROCESSES_MAX) card->process_count = ADLSIM_PROCESSES_MAX;
  return ADLSIM_READ_OK;
}
