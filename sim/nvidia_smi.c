/* SPDX-FileCopyrightText: 2026 The autodl authors
 * SPDX-License-Identifier: Apache-2.0
 * nvidia-smi for simulated cards: the default table, -L, and --query-gpu in csv. It is linked
 * statically, so that it runs in any image (no libc of a known kind needed), and so reads the state
 * file itself: a static program can't dlopen. Where cards are real the driver's own is mounted. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "state_reader.h"

enum { kFieldsMax = 64, kNoDriver = 9, kBadUse = 2, kLostCard = 15 };

static const char* const kHelp =
    "nvidia-smi (simulated cards)\n"
    "  nvidia-smi                                  table\n"
    "  nvidia-smi -L | --list-gpus                 one line a card\n"
    "  nvidia-smi --query-gpu=FIELD,… --format=csv[,noheader][,nounits] [-i INDEX|UUID]\n"
    "  nvidia-smi --query-compute-apps=pid,used_memory,… --format=csv[,noheader][,nounits]\n"
    "  nvidia-smi --help-query-gpu                 the fields\n"
    "  -l SECONDS                                  again and again\n";

struct machine {
  struct adlsim_slot_head head;
  struct adlsim_card cards[ADLSIM_CARDS_MAX];
  int lost[ADLSIM_CARDS_MAX];
};
static struct machine machine;

struct options {
  int list, loop_s;
  const char* query;
  const char* apps;
  const char* only; /* -i */
  int csv, header, units;
};

static int read_machine(void) {
  const char* path = adlsim_default_path();
  if (adlsim_read_head(path, &machine.head) != ADLSIM_READ_OK ||
      machine.head.driver_fault == ADLSIM_DRIVER_NOT_LOADED) {
    fputs(
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver: this\n"
        "instance has no card (or the simulated driver is not loaded).\n",
        stderr);
    return kNoDriver;
  }
  if (machine.head.driver_fault == ADLSIM_DRIVER_MISMATCH) {
    fputs("Failed to initialize NVML: Driver/library version mismatch\n", stderr);
    return 18;
  }
  for (uint32_t i = 0; i < machine.head.card_count; ++i)
    machine.lost[i] = adlsim_read_card(path, i, &machine.cards[i]) != ADLSIM_READ_OK ||
                      machine.cards[i].fault == ADLSIM_CARD_LOST;
  return 0;
}

/* --- --query-gpu ------------------------------------------------------------------------------*/

enum kind {
  kText,
  kNumber,
  kMebibytes,
  kMilliwatts,
  kState,
  kOnOff,
  kIndex,
  kBusId,
  kCap,
  kCount,
  kDriver,
  kTime,
  kUsed,
  kFree
};
struct field {
  const char* name;
  const char* unit;
  enum kind kind;
  size_t offset; /* into struct adlsim_card */
};
#define CARD(member) offsetof(struct adlsim_card, member)
static const struct field kFields[] = {
    {"index", "", kIndex, 0},
    {"name", "", kText, CARD(name)},
    {"gpu_name", "", kText, CARD(name)},
    {"uuid", "", kText, CARD(uuid)},
    {"gpu_uuid", "", kText, CARD(uuid)},
    {"serial", "", kText, CARD(serial)},
    {"vbios_version", "", kText, CARD(vbios)},
    {"driver_version", "", kDriver, 0},
    {"timestamp", "", kTime, 0},
    {"count", "", kCount, 0},
    {"pci.bus_id", "", kBusId, 0},
    {"gpu_bus_id", "", kBusId, 0},
    {"compute_cap", "", kCap, 0},
    {"memory.total", " MiB", kMebibytes, CARD(memory_total)},
    {"memory.reserved", " MiB", kMebibytes, CARD(memory_reserved)},
    {"memory.used", " MiB", kUsed, 0},
    {"memory.free", " MiB", kFree, 0},
    {"utilization.gpu", " %", kNumber, CARD(gpu_percent)},
    {"utilization.memory", " %", kNumber, CARD(memory_percent)},
    {"temperature.gpu", "", kNumber, CARD(temperature_c)},
    {"fan.speed", " %", kNumber, CARD(fan_percent)},
    {"power.draw", " W", kMilliwatts, CARD(power_mw)},
    {"power.limit", " W", kMilliwatts, CARD(power_limit_mw)},
    {"enforced.power.limit", " W", kMilliwatts, CARD(power_limit_mw)},
    {"pstate", "", kState, CARD(pstate)},
    {"clocks.sm", " MHz", kNumber, CARD(sm_mhz)},
    {"clocks.current.sm", " MHz", kNumber, CARD(sm_mhz)},
    {"clocks.gr", " MHz", kNumber, CARD(sm_mhz)},
    {"clocks.mem", " MHz", kNumber, CARD(memory_mhz)},
    {"clocks.max.sm", " MHz", kNumber, CARD(sm_max_mhz)},
    {"clocks.max.mem", " MHz", kNumber, CARD(memory_max_mhz)},
    {"pcie.link.gen.current", "", kNumber, CARD(pcie_generation)},
    {"pcie.link.gen.max", "", kNumber, CARD(pcie_max_generation)},
    {"pcie.link.width.current", "", kNumber, CARD(pcie_width)},
    {"ecc.mode.current", "", kOnOff, CARD(ecc_mode)},
    {"mig.mode.current", "", kOnOff, CARD(mig_mode)},
};
enum { kFieldCount = sizeof kFields / sizeof *kFields };

static void print_timestamp(void) {
  char text[40];
  time_t now = time(0);
  strftime(text, sizeof text, "%Y/%m/%d %H:%M:%S", localtime(&now));
  printf("%s.000", text);
}

static void print_mebibytes(int64_t bytes, const char* unit) {
  printf("%lld%s", (long long)(bytes >> 20), unit);
}

static void print_field(const struct field* field, uint32_t index, int units) {
  const struct adlsim_card* card = &machine.cards[index];
  const char* at = (const char*)card + field->offset;
  const char* unit = units ? field->unit : "";
  int32_t number = 0;
  if (machine.lost[index] && field->kind != kIndex) {
    fputs("[GPU is lost]", stdout);
    return;
  }
  if (field->kind == kNumber || field->kind == kMilliwatts || field->kind == kState ||
      field->kind == kOnOff) {
    memcpy(&number, at, sizeof number);
    if (number < 0) {
      fputs("[N/A]", stdout);
      return;
    }
  }
  switch (field->kind) {
    case kIndex: printf("%u", index); break;
    case kText: fputs(*at != 0 ? at : "[N/A]", stdout); break;
    case kDriver: fputs(machine.head.driver_version, stdout); break;
    case kTime: print_timestamp(); break;
    case kCount: printf("%u", machine.head.card_count); break;
    case kBusId:
      printf("%08X:%02X:%02X.0", card->pci_domain, card->pci_bus, card->pci_device);
      break;
    case kCap: printf("%d.%d", card->cc_major, card->cc_minor); break;
    case kMebibytes: {
      int64_t bytes;
      memcpy(&bytes, at, sizeof bytes);
      print_mebibytes(bytes, unit);
      break;
    }
    case kUsed: print_mebibytes(card->memory_used, unit); break;
    case kFree:
      print_mebibytes(card->memory_total - card->memory_used - card->memory_reserved, unit);
      break;
    case kMilliwatts: printf("%d.%02d%s", number / 1000, number % 1000 / 10, unit); break;
    case kState: printf("P%d", number); break;
    case kOnOff: fputs(number ? "Enabled" : "Disabled", stdout); break;
    case kNumber: printf("%d%s", number, unit); break;
  }
}

static int wanted(const struct options* options, uint32_t index) {
  if (options->only == 0) return 1;
  char text[12];
  snprintf(text, sizeof text, "%u", index);
  return strcmp(options->only, text) == 0 || strcmp(options->only, machine.cards[index].uuid) == 0;
}

/* Splits at commas; returns how many, or 0 with a message at an unknown field. */
static int parse_fields(const char* list, const struct field** out) {
  int count = 0;
  while (*list != 0) {
    size_t length = strcspn(list, ",");
    size_t skip = strspn(list, " ");
    const struct field* found = 0;
    for (int i = 0; i < kFieldCount; ++i)
      if (length - skip == strlen(kFields[i].name) &&
          strncmp(list + skip, kFields[i].name, length - skip) == 0)
        found = &kFields[i];
    if (found == 0 || count == kFieldsMax) {
      printf("Field \"%.*s\" is not a valid field to query.\n", (int)length, list);
      return 0;
    }
    out[count++] = found;
    list += length + (list[length] == ',');
  }
  return count;
}

static int query(const struct options* options) {
  const struct field* fields[kFieldsMax];
  int count = parse_fields(options->query, fields), shown = 0, lost = 0;
  if (count == 0) return kBadUse;
  for (int i = 0; options->header && i < count; ++i) {
    const char* unit = fields[i]->unit;
    printf("%s%s", i > 0 ? ", " : "", fields[i]->name);
    if (options->units && unit[0] == ' ') printf(" [%s]", unit + 1);
    if (i + 1 == count) putchar('\n');
  }
  for (uint32_t c = 0; c < machine.head.card_count; ++c) {
    if (!wanted(options, c)) continue;
    for (int i = 0; i < count; ++i) {
      if (i > 0) fputs(", ", stdout);
      print_field(fields[i], c, options->units);
    }
    putchar('\n');
    ++shown;
    lost |= machine.lost[c];
  }
  if (shown == 0) puts("No devices were found");
  return shown == 0 ? 6 : lost ? kLostCard : 0;
}

static int query_apps(const struct options* options) {
  if (options->header) printf("gpu_uuid, pid, used_gpu_memory%s\n", options->units ? " [MiB]" : "");
  for (uint32_t c = 0; c < machine.head.card_count; ++c)
    for (uint32_t p = 0; wanted(options, c) && p < machine.cards[c].process_count; ++p) {
      const struct adlsim_process* process = &machine.cards[c].processes[p];
      printf("%s, %lld, ", machine.cards[c].uuid, (long long)process->pid);
      print_mebibytes(process->memory_bytes, options->units ? " MiB" : "");
      putchar('\n');
    }
  return 0;
}

/* --- table ------------------------------------------------------------------------------------*/

static void or_na(char* out, size_t size, int32_t value, const char* unit) {
  if (value < 0)
    snprintf(out, size, "N/A");
  else
    snprintf(out, size, "%d%s", value, unit);
}

static void table_card(uint32_t index) {
  const struct adlsim_card* card = &machine.cards[index];
  char fan[12], temperature[12], power[24], memory[32], load[12], bus[24];
  if (machine.lost[index]) {
    printf("| %3u  %-83s|\n", index, "ERR! GPU is lost. Reboot the system to recover this GPU");
  } else {
    or_na(fan, sizeof fan, card->fan_percent, "%");
    or_na(temperature, sizeof temperature, card->temperature_c, "C");
    or_na(load, sizeof load, card->gpu_percent, "%");
    snprintf(power, sizeof power, "%dW / %dW", card->power_mw / 1000, card->power_limit_mw / 1000);
    snprintf(memory, sizeof memory, "%lldMiB / %lldMiB", (long long)(card->memory_used >> 20),
             (long long)(card->memory_total >> 20));
    snprintf(bus, sizeof bus, "%08X:%02X:%02X.0", card->pci_domain, card->pci_bus,
             card->pci_device);
    printf("| %3u  %-30.30s  On | %18s Off | %20s |\n", index, card->name, bus,
           card->ecc_mode < 0 ? "N/A" : "0");
    printf("| %4s  %4s  P%-2d %19s     | %22s | %7s      Default |\n", fan, temperature,
           card->pstate, power, memory, load);
  }
  puts(
      "+-----------------------------------------+------------------------+----------------------"
      "+");
}

static int table(void) {
  char version[96];
  print_timestamp();
  putchar('\n');
  snprintf(version, sizeof version, "NVIDIA-SMI %s   Driver Version: %s   CUDA Version: %d.%d",
           machine.head.driver_version, machine.head.driver_version,
           machine.head.cuda_version / 1000, machine.head.cuda_version % 1000 / 10);
  puts(
      "+-----------------------------------------------------------------------------------------"
      "+");
  printf("| %-88s|\n", version);
  printf("| %-88s|\n", "SIMULATED cards: computation runs on the CPU");
  puts(
      "|-----------------------------------------+------------------------+----------------------+"
      "\n"
      "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC "
      "|\n"
      "| Fan  Temp  Perf          Pwr:Usage/Cap  |           Memory-Usage | GPU-Util  Compute M. "
      "|\n"
      "|=========================================+========================+======================"
      "|");
  for (uint32_t i = 0; i < machine.head.card_count; ++i) table_card(i);
  puts(
      "\n"
      "+-----------------------------------------------------------------------------------------+"
      "\n"
      "| Processes:                                                                              "
      "|\n"
      "|  GPU        PID   Type   Process name                                        GPU Memory "
      "|\n"
      "|========================================================================================="
      "|");
  int shown = 0;
  for (uint32_t c = 0; c < machine.head.card_count; ++c)
    for (uint32_t p = 0; !machine.lost[c] && p < machine.cards[c].process_count; ++p, ++shown) {
      const struct adlsim_process* process = &machine.cards[c].processes[p];
      char path[48], name[48] = "-";
      snprintf(path, sizeof path, "/proc/%lld/comm", (long long)process->pid);
      FILE* file = fopen(path, "r");
      if (file != 0) {
        if (fgets(name, sizeof name, file) != 0) name[strcspn(name, "\n")] = 0;
        fclose(file);
      }
      printf("| %4u %10lld      C   %-46.46s %12lldMiB |\n", c, (long long)process->pid, name,
             (long long)(process->memory_bytes >> 20));
    }
  if (shown == 0) printf("|  %-87s|\n", "No running processes found");
  puts(
      "+-----------------------------------------------------------------------------------------"
      "+");
  return 0;
}

/* --- command line -----------------------------------------------------------------------------*/

static int list(void) {
  for (uint32_t i = 0; i < machine.head.card_count; ++i)
    if (machine.lost[i])
      printf("Unable to determine the device handle for GPU %u: GPU is lost\n", i);
    else
      printf("GPU %u: %s (UUID: %s)\n", i, machine.cards[i].name, machine.cards[i].uuid);
  return 0;
}

/* The value of `name=VALUE` or `name VALUE`; moves *i past it. */
static const char* value_of(int argc, char** argv, int* i, const char* name) {
  size_t length = strlen(name);
  if (strncmp(argv[*i], name, length) != 0) return 0;
  if (argv[*i][length] == '=') return argv[*i] + length + 1;
  if (argv[*i][length] != 0 || *i + 1 >= argc) return 0;
  return argv[++*i];
}

static int parse(int argc, char** argv, struct options* options) {
  for (int i = 1; i < argc; ++i) {
    const char* value;
    if (strcmp(argv[i], "-L") == 0 || strcmp(argv[i], "--list-gpus") == 0) {
      options->list = 1;
    } else if ((value = value_of(argc, argv, &i, "--query-gpu")) != 0) {
      options->query = value;
    } else if ((value = value_of(argc, argv, &i, "--query-compute-apps")) != 0) {
      options->apps = value;
    } else if ((value = value_of(argc, argv, &i, "--format")) != 0) {
      options->csv = strncmp(value, "csv", 3) == 0;
      options->header = strstr(value, "noheader") == 0;
      options->units = strstr(value, "nounits") == 0;
    } else if ((value = value_of(argc, argv, &i, "-i")) != 0 ||
               (value = value_of(argc, argv, &i, "--id")) != 0) {
      options->only = value;
    } else if ((value = value_of(argc, argv, &i, "-l")) != 0 ||
               (value = value_of(argc, argv, &i, "--loop")) != 0) {
      options->loop_s = atoi(value) > 0 ? atoi(value) : 1;
    } else {
      return 0;
    }
  }
  return 1;
}

static int show(const struct options* options) {
  int result = read_machine();
  if (result != 0) return result;
  if (options->list) return list();
  if (options->query != 0) return query(options);
  if (options->apps != 0) return query_apps(options);
  return table();
}

int main(int argc, char** argv) {
  struct options options = {.header = 1, .units = 1};
  if (argc == 2 && (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0)) {
    fputs(kHelp, stdout);
    return 0;
  }
  if (argc == 2 && strcmp(argv[1], "--help-query-gpu") == 0) {
    for (int i = 0; i < kFieldCount; ++i) puts(kFields[i].name);
    return 0;
  }
  if (!parse(argc, argv, &options)) {
    fprintf(stderr, "Invalid combination of input arguments. nvidia-smi -h shows what there is.\n");
    return kBadUse;
  }
  if ((options.query != 0 || options.apps != 0) && !options.csv) {
    puts("\"--format=\" switch is missing");
    return kBadUse;
  }
  for (;;) {
    int result = show(&options);
    if (options.loop_s == 0 || result == kBadUse) return result;
    fflush(stdout);
    struct timespec pause = {options.loop_s, 0};
    nanosleep(&pause, 0);
  }
}
