/* SPDX-FileCopyrightText: 2026 The autodl authors
 * SPDX-License-Identifier: Apache-2.0
 * The few system calls that code without a libc needs. x86-64 Linux. */
#ifndef AUTODL_SIM_SYSCALLS_H
#define AUTODL_SIM_SYSCALLS_H

#if !defined(__x86_64__) || !defined(__linux__)
#error "the simulated driver is written for x86-64 Linux"
#endif

#include <stddef.h>
#include <stdint.h>

struct sys_time {
  int64_t seconds, nanoseconds;
};

static inline long sys_call4(long number, long a, long b, long c, long d) {
  long result;
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                   : "rcx", "r11", "memory");
  return result;
}

static inline int sys_open_read(const char* path) { /* O_RDONLY | O_CLOEXEC | O_NONBLOCK */
  return (int)sys_call4(2, (long)path, 02000000 | 04000, 0, 0);
}
static inline long sys_read(int fd, void* data, size_t bytes) {
  return sys_call4(0, fd, (long)data, (long)bytes, 0);
}
static inline long sys_pread(int fd, void* data, size_t bytes, uint64_t offset) {
  return sys_call4(17, fd, (long)data, (long)bytes, (long)offset);
}
static inline void sys_close(int fd) {
  sys_call4(3, fd, 0, 0, 0);
}
static inline void sys_yield(void) {
  sys_call4(24, 0, 0, 0, 0);
}
static inline long sys_access(const char* path) {
  return sys_call4(21, (long)path, 4, 0, 0);
}
static inline void sys_sleep_ms(uint32_t ms) {
  struct sys_time time = {ms / 1000, (int64_t)(ms % 1000) * 1000000};
  sys_call4(35, (long)&time, 0, 0, 0);
}
static inline struct sys_time sys_clock(long clock) { /* 0 realtime, 1 monotonic */
  struct sys_time time = {0, 0};
  sys_call4(228, clock, (long)&time, 0, 0);
  return time;
}
static inline void sys_affinity(unsigned long* mask, size_t bytes) {
  sys_call4(204, 0, (long)bytes, (long)mask, 0);
}
static inline void sys_crash(void) { /* SIGSEGV to this process: rt_sigaction default, then kill */
  struct {
    void* handler;
    unsigned long flags;
    void* restorer;
    uint64_t mask;
  } action = {0, 0, 0, 0};
  sys_call4(13, 11, (long)&action, 0, 8);
  sys_call4(62, sys_call4(39, 0, 0, 0, 0), 11, 0, 0);
}

#endif
