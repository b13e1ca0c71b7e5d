/* SPDX-FileCopyrightText: 2026 The autodl authors
 * SPDX-License-Identifier: Apache-2.0
 * Reading the state file without libc: the simulated libnvidia-ml must load beside any glibc and
 * beside musl, so that it may need no library at all. x86-64 Linux. */
#ifndef AUTODL_SIM_STATE_READER_H
#define AUTODL_SIM_STATE_READER_H

#include "state_format.h"

enum adlsim_read { ADLSIM_READ_OK = 0, ADLSIM_READ_ABSENT = 1, ADLSIM_READ_BAD = 2 };

/* The head of the active slot. */
int adlsim_read_head(const char* path, struct adlsim_slot_head* head);
/* One card. ADLSIM_READ_ABSENT where the file has no card of that index (any more). */
int adlsim_read_card(const char* path, uint32_t index, struct adlsim_card* card);
/* The path readers use by default (see state_format.h). */
const char* adlsim_default_path(void);

#endif
