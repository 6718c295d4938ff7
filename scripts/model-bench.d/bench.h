// Definitions shared by the kernels of scripts/model-bench: a kernel does a number of operations
// each time it is called, and prepares its data at the first call.
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { LINE = 64, KIB = 1 << 10, MIB = 1 << 20 };

// Number of operations per call.
typedef size_t kernel(void);
struct named {
  const char *name;
  kernel *kernel;
};
extern const struct named chains[], branches[], arithmetic[], memories[], programs[], validation[];

// Uses a value, so that the compiler keeps its computation.
#define KEEP(value) __asm__ volatile("" : "+r"(value))
#define KEEP_FP(value) __asm__ volatile("" : "+x"(value))

static inline uint64_t random_word(void) {
  static uint64_t state = 88172645463325252u;
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

enum pages { SMALL, HUGE };

static inline void *pages(size_t bytes, enum pages kind) {
  size_t align = 2 * MIB;
  char *at = mmap(NULL, bytes + align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) {
    perror("mmap");
    exit(1);
  }
  at = (char *)(((uintptr_t)at + align - 1) & ~(uintptr_t)(align - 1));
  madvise(at, bytes, kind == HUGE ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  memset(at, 1, bytes);
  return at;
}

// One cycle through all lines of a buffer, in an order that no prefetcher follows: a linear
// congruential generator of full period (D. Knuth, The Art of Computer Programming, 3.2.1.2) gives
// the next one.
static inline char *cycle(size_t bytes, enum pages kind) {
  size_t lines = bytes / LINE;
  char *buffer = pages(bytes, kind);
  for (size_t i = 0; i < lines; i++) {
    size_t next = (i * 0x5851f42d4c957f2du + 0x14057b7ef767814fu) % lines;
    *(char **)(buffer + i * LINE) = buffer + next * LINE;
  }
  return buffer;
}
