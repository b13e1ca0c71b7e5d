/* SPDX-FileCopyrightText: 2026 The autodl authors
 * SPDX-License-Identifier: Apache-2.0
 * What the files of the simulated libnvidia-ml share. Nothing here is exported. */
#ifndef AUTODL_SIM_NVML_CALLS_H
#define AUTODL_SIM_NVML_CALLS_H

#include "nvml_abi.h"
#include "state_reader.h"

struct device {
  uint32_t index;
};
extern struct device nvml_devices[ADLSIM_CARDS_MAX];
extern int nvml_init_count; /* nvmlInit less nvmlShutdown */

/* The card of an index as it is now, its fault applied: lost, hung, crashed. */
nvml_result read_index(uint32_t index, struct adlsim_card* card);
/* What a card is: told as long as it answers at all. */
nvml_result identity(nvml_device device, struct adlsim_card* card);
/* What it is doing: not told by a card with the fault "error". */
nvml_result figures(nvml_device device, struct adlsim_card* card);

/* Answers: -1 means that the driver can't tell. */
nvml_result give_text(char* out, unsigned size, const char* text);
nvml_result give_number(unsigned* out, int64_t value);
nvml_result give_count(uint64_t* out, int64_t value);
/* "0000003B" and so on: the domain in 8 digits, or in 4. out has 20 bytes. */
void bus_id(char* out, const struct adlsim_card* card, int domain_digits);

#define CARD(source)                               \
  struct adlsim_card card;                         \
  nvml_result card_result = source(device, &card); \
  if (card_result != kSuccess) return card_result
#define NUMBER(name, source, expression)                       \
  EXPORT nvml_result name(nvml_device device, unsigned* out) { \
    CARD(source);                                              \
    return give_number(out, (expression));                     \
  }
#define NOT_SUPPORTED(name, ...)                               \
  EXPORT nvml_result name(nvml_device device, ##__VA_ARGS__) { \
    CARD(identity);                                            \
    return kNotSupported;                                      \
  }

#endif
