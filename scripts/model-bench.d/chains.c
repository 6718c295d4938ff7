// Each operation waits for the one before it, through registers or through memory.
#include "bench.h"

#define CHASE(name, bytes, kind, loads)                              \
  static size_t name(void) {                                         \
    static char *at;                                                 \
    if (!at) at = cycle(bytes, kind);                                \
    for (size_t i = 0; i < loads; i++) at = *(char *volatile *)at;   \
    return loads;                                                    \
  }
CHASE(chase_16k, 16 * KIB, SMALL, 300000)
CHASE(chase_512k, 512 * KIB, SMALL, 100000)
CHASE(chase_8m, 8 * MIB, SMALL, 50000)
CHASE(chase_64m, 64 * MIB, SMALL, 30000)
CHASE(chase_64m_huge, 64 * MIB, HUGE, 30000)

// Several chains in turn; their positions are kept in an array.
static size_t in_turn(size_t count) {
  static char *volatile at[8];
  size_t rounds = 5000;
  if (!at[0]) {
    char *buffer = cycle(64 * MIB, SMALL);
    for (size_t i = 0; i < 8; i++) at[i] = buffer + 8 * MIB * i;
  }
  for (size_t i = 0; i < rounds; i++)
    for (size_t j = 0; j < count; j++) at[j] = *(char *volatile *)at[j];
  return rounds * count;
}
static size_t chains_array_2(void) { return in_turn(2); }
static size_t chains_array_4(void) { return in_turn(4); }
static size_t chains_array_8(void) { return in_turn(8); }

#define STEP(at) at = *(char *volatile *)at;
static size_t chains_registers_4(void) {
  static char *a, *b, *c, *d;
  size_t rounds = 10000;
  if (!a) {
    a = cycle(64 * MIB, SMALL);
    b = a + 16 * MIB;
    c = b + 16 * MIB;
    d = c + 16 * MIB;
  }
  for (size_t i = 0; i < rounds; i++) { STEP(a) STEP(b) STEP(c) STEP(d) }
  return rounds * 4;
}

// Nodes in random order, with work on the content of each.
static size_t list_payload(void) {
  static char *at;
  size_t nodes = 30000;
  uint64_t sum = 0;
  if (!at) at = cycle(64 * MIB, SMALL);
  for (size_t i = 0; i < nodes; i++) {
    uint64_t *payload = (uint64_t *)at;
    for (size_t j = 1; j < 8; j++) sum += payload[j] * j;
    at = *(char *volatile *)at;
  }
  KEEP(sum);
  return nodes;
}

static size_t counter_in_memory(void) {
  static volatile uint64_t counter;
  size_t adds = 500000;
  for (size_t i = 0; i < adds; i++) counter++;
  return adds;
}

static size_t prefix_sum(void) {
  enum { WORDS = 4096 };
  static volatile uint32_t words[WORDS];
  for (size_t round = 0; round < 100; round++)
    for (size_t i = 1; i < WORDS; i++) words[i] += words[i - 1];
  return 100 * (WORDS - 1);
}

// Local variables on the stack, as in unoptimised code.
__attribute__((optimize("O0"), noinline)) static size_t not_optimised(void) {
  uint64_t a = 1, b = 2, i;
  for (i = 0; i < 200000; i++) {
    a = a + b;
    b = b ^ i;
  }
  KEEP(a);
  return i;
}

static uint64_t __attribute__((noinline)) fibonacci(uint64_t n) {
  __asm__ volatile("");
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
static size_t calls(void) {
  uint64_t value = fibonacci(22);
  KEEP(value);
  return 57313;
}

const struct named chains[] = {
    {"chase-16k", chase_16k}, {"chase-512k", chase_512k}, {"chase-8m", chase_8m},
    {"chase-64m", chase_64m}, {"chase-64m-huge", chase_64m_huge},
    {"chains-array-2", chains_array_2}, {"chains-array-4", chains_array_4},
    {"chains-array-8", chains_array_8}, {"chains-registers-4", chains_registers_4},
    {"list-payload", list_payload}, {"counter-in-memory", counter_in_memory},
    {"prefix-sum", prefix_sum}, {"not-optimised", not_optimised}, {"calls", calls}, {0}};
