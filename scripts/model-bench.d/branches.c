// Control flow that depends on data.
#include "bench.h"

static uint64_t *ascending_words(size_t bytes) {
  uint64_t *words = pages(bytes, SMALL);
  for (size_t i = 0; i < bytes / 8; i++) words[i] = i;
  return words;
}

static size_t search(uint64_t *words, size_t count, size_t searches) {
  uint64_t found = 0;
  for (size_t i = 0; i < searches; i++) {
    uint64_t wanted = random_word() % count;
    size_t low = 0, high = count;
    while (low < high) {
      size_t middle = (low + high) / 2;
      if (*(volatile uint64_t *)&words[middle] < wanted)
        low = middle + 1;
      else
        high = middle;
      __asm__ volatile("");
    }
    found += low;
  }
  KEEP(found);
  return searches;
}
static size_t search_16m(void) {
  static uint64_t *words;
  if (!words) words = ascending_words(16 * MIB);
  return search(words, 16 * MIB / 8, 5000);
}
static size_t search_256k(void) {
  static uint64_t *words;
  if (!words) words = ascending_words(256 * KIB);
  return search(words, 256 * KIB / 8, 10000);
}
static size_t search_branchless(void) {
  static uint64_t *words;
  size_t searches = 5000, count = 16 * MIB / 8;
  uint64_t found = 0;
  if (!words) words = ascending_words(16 * MIB);
  for (size_t i = 0; i < searches; i++) {
    uint64_t wanted = random_word() % count;
    uint64_t *base = words;
    for (size_t half = count / 2; half > 0; half /= 2) base += half * (base[half] <= wanted);
    found += *base;
  }
  KEEP(found);
  return searches;
}

static uint8_t *random_bytes(size_t count) {
  uint8_t *bytes = malloc(count);
  for (size_t i = 0; i < count; i++) bytes[i] = random_word() >> 20;
  return bytes;
}

#define BRANCHES(name, condition)                                   \
  static size_t name(void) {                                        \
    static uint8_t *bytes;                                          \
    size_t count = 300000;                                          \
    uint64_t one = 0, other = 0;                                    \
    if (!bytes) bytes = random_bytes(count);                        \
    for (size_t i = 0; i < count; i++) {                            \
      if (condition) {                                              \
        one++;                                                      \
        KEEP(one);                                                  \
      } else {                                                      \
        other += 3;                                                 \
        KEEP(other);                                                \
      }                                                             \
    }                                                               \
    return count;                                                   \
  }
BRANCHES(random_branches, bytes[i] & 1)
BRANCHES(rare_branches, bytes[i] < 13)
BRANCHES(periodic_branches, i % 7 < 3 && bytes[i] + 1)

static size_t hash_probe(uint64_t *table, size_t slots, size_t probes) {
  uint64_t found = 0;
  for (size_t i = 0; i < probes; i++) {
    uint64_t key = (random_word() % slots) | 1, at = key * 0x9e3779b97f4a7c15u;
    for (at >>= 20; table[at % slots] && table[at % slots] != key; at++) __asm__ volatile("");
    found += table[at % slots] == key;
  }
  KEEP(found);
  return probes;
}
static uint64_t *half_full(size_t slots) {
  uint64_t *table = pages(slots * 8, SMALL);
  memset(table, 0, slots * 8);
  for (size_t i = 0; i < slots / 2; i++) {
    uint64_t key = (random_word() % slots) | 1, at = key * 0x9e3779b97f4a7c15u;
    for (at >>= 20; table[at % slots] && table[at % slots] != key; at++) {}
    table[at % slots] = key;
  }
  return table;
}
static size_t hash_16m(void) {
  static uint64_t *table;
  if (!table) table = half_full(2 * MIB);
  return hash_probe(table, 2 * MIB, 50000);
}
static size_t hash_64k(void) {
  static uint64_t *table;
  if (!table) table = half_full(8 * KIB);
  return hash_probe(table, 8 * KIB, 50000);
}

static void __attribute__((noinline)) sort(uint32_t *words, long low, long high) {
  while (low < high) {
    uint32_t pivot = words[(low + high) / 2];
    long i = low, j = high;
    while (i <= j) {
      while (words[i] < pivot) i++;
      while (words[j] > pivot) j--;
      if (i > j) break;
      uint32_t kept = words[i];
      words[i++] = words[j];
      words[j--] = kept;
    }
    sort(words, low, j);
    low = i;
  }
}
static size_t quicksort(void) {
  enum { WORDS = 20000 };
  static uint32_t words[WORDS];
  for (size_t i = 0; i < WORDS; i++) words[i] = random_word();
  sort(words, 0, WORDS - 1);
  return WORDS;
}

static size_t merge_sort(void) {
  enum { WORDS = 16384 };
  static uint32_t arrays[2][WORDS];
  uint32_t *from = arrays[0], *to = arrays[1];
  for (size_t i = 0; i < WORDS; i++) from[i] = random_word();
  for (size_t width = 1; width < WORDS; width *= 2) {
    for (size_t at = 0; at < WORDS; at += 2 * width) {
      size_t a = at, b = at + width, out = at;
      while (a < at + width && b < at + 2 * width) {
        if (from[a] <= from[b])
          to[out++] = from[a++];
        else
          to[out++] = from[b++];
        __asm__ volatile("" : : : "memory");
      }
      while (a < at + width) to[out++] = from[a++];
      while (b < at + 2 * width) to[out++] = from[b++];
    }
    uint32_t *kept = from;
    from = to;
    to = kept;
  }
  return WORDS;
}

// Switches on the next opcode: an interpreter of a program that repeats, and of one that does not.
static size_t interpret(const uint8_t *code, size_t count) {
  uint64_t a = 1, b = 1;
  for (size_t i = 0; i < count; i++) {
    switch (code[i] & 7) {
      case 0: a += b; break;
      case 1: b ^= a; break;
      case 2: a = a << 3 | a >> 61; break;
      case 3: b -= a; break;
      case 4: a ^= 0x55; break;
      case 5: b += 7; break;
      case 6: a -= b; break;
      default: b = b << 5 | b >> 59; break;
    }
    KEEP(a);
    KEEP(b);
  }
  return count;
}
static size_t interpreter_loop(void) {
  static uint8_t *code;
  size_t count = 200000;
  if (!code) {
    code = random_bytes(count);
    for (size_t i = 24; i < count; i++) code[i] = code[i - 24];
  }
  return interpret(code, count);
}
static size_t interpreter_random(void) {
  static uint8_t *code;
  if (!code) code = random_bytes(200000);
  return interpret(code, 200000);
}

const struct named branches[] = {
    {"binary-search-16m", search_16m}, {"binary-search-256k", search_256k},
    {"binary-search-branchless", search_branchless}, {"branches-random", random_branches},
    {"branches-rare", rare_branches}, {"branches-periodic", periodic_branches},
    {"hash-16m", hash_16m}, {"hash-64k", hash_64k}, {"quicksort", quicksort},
    {"merge-sort", merge_sort}, {"interpreter-loop", interpreter_loop},
    {"interpreter-random", interpreter_random}, {0}};
