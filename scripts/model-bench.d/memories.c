// Lines and pages: streams, strides and random places.
#include "bench.h"

static size_t stores_64m(void) {
  static uint64_t *words;
  size_t count = 64 * MIB / 8;
  if (!words) words = pages(64 * MIB, SMALL);
  for (size_t i = 0; i < count; i++) ((volatile uint64_t *)words)[i] = i;
  return count;
}
static size_t stores_16k(void) {
  static uint64_t words[2 * KIB];
  for (size_t round = 0; round < 200; round++)
    for (size_t i = 0; i < 2 * KIB; i++) ((volatile uint64_t *)words)[i] = i;
  return 200 * 2 * KIB;
}

// Copies words from one array to another, 8 bytes at a time. An operation is a word.
static size_t copy_64m(void) {
  static uint64_t *from, *to;
  size_t count = 32 * MIB / 8;
  if (!from) {
    from = pages(32 * MIB, SMALL);
    to = pages(32 * MIB, SMALL);
  }
  for (size_t i = 0; i < count; i++) {
    to[i] = from[i];
    __asm__ volatile("" : : : "memory");
  }
  return count;
}
// An operation is a line.
static size_t library_copy(void) {
  static char *from, *to;
  if (!from) {
    from = pages(MIB / 4, SMALL);
    to = pages(MIB / 4, SMALL);
  }
  for (size_t round = 0; round < 20; round++) {
    memcpy(to, from, MIB / 4);
    KEEP(to);
  }
  return 20 * (MIB / 4) / LINE;
}
static size_t triad_64m(void) {
  static double *a, *b, *c;
  size_t count = 24 * MIB / 8;
  if (!a) {
    a = pages(24 * MIB, SMALL);
    b = pages(24 * MIB, SMALL);
    c = pages(24 * MIB, SMALL);
  }
  for (size_t i = 0; i < count; i++) {
    a[i] = b[i] + 3.0 * c[i];
    __asm__ volatile("" : : : "memory");
  }
  return count;
}

static size_t gather(uint32_t **index, uint64_t **words, size_t bytes) {
  size_t count = 100000;
  uint64_t sum = 0;
  if (!*words) {
    *words = pages(bytes, SMALL);
    *index = malloc(count * sizeof **index);
    for (size_t i = 0; i < count; i++) (*index)[i] = random_word() % (bytes / 8);
  }
  for (size_t i = 0; i < count; i++) {
    sum += (*words)[(*index)[i]];
    KEEP(sum);
  }
  return count;
}
static size_t gather_64m(void) {
  static uint32_t *index;
  static uint64_t *words;
  return gather(&index, &words, 64 * MIB);
}
static size_t gather_256k(void) {
  static uint32_t *index;
  static uint64_t *words;
  return gather(&index, &words, 256 * KIB);
}

static size_t stride(char **buffer, enum pages kind) {
  size_t count = 64 * MIB / 4096;
  uint64_t sum = 0;
  if (!*buffer) *buffer = pages(64 * MIB, kind);
  for (size_t round = 0; round < 2; round++)
    for (size_t i = 0; i < count; i++) sum += *(volatile uint64_t *)(*buffer + i * 4096 + i % 64 * 64);
  KEEP(sum);
  return 2 * count;
}
static size_t stride_4k(void) {
  static char *buffer;
  return stride(&buffer, SMALL);
}
static size_t stride_4k_huge(void) {
  static char *buffer;
  return stride(&buffer, HUGE);
}

// Independent updates of random words.
static size_t update(uint64_t **words, size_t bytes, uint64_t *at) {
  size_t count = 100000;
  if (!*words) *words = pages(bytes, SMALL);
  for (size_t i = 0; i < count; i++) {
    *at = *at * 6364136223846793005u + 1442695040888963407u;
    (*words)[(*at >> 30) % (bytes / 8)] ^= *at;
  }
  return count;
}
static size_t updates_64m(void) {
  static uint64_t *words, at = 1;
  return update(&words, 64 * MIB, &at);
}
static size_t updates_256k(void) {
  static uint64_t *words, at = 1;
  return update(&words, 256 * KIB, &at);
}

// Counts bytes: stores, then loads of the same few words.
static size_t histogram(void) {
  static uint8_t *text;
  static uint32_t counts[256];
  size_t count = 300000;
  if (!text) {
    text = malloc(count);
    for (size_t i = 0; i < count; i++) text[i] = random_word() >> 20;
  }
  for (size_t i = 0; i < count; i++) counts[text[i]]++;
  __asm__ volatile("" : : "r"(counts) : "memory");
  return count;
}

const struct named memories[] = {
    {"stores-64m", stores_64m}, {"stores-16k", stores_16k}, {"copy-64m", copy_64m},
    {"library-copy", library_copy}, {"triad-64m", triad_64m}, {"gather-64m", gather_64m},
    {"gather-256k", gather_256k}, {"stride-4k", stride_4k}, {"stride-4k-huge", stride_4k_huge},
    {"updates-64m", updates_64m}, {"updates-256k", updates_256k}, {"histogram", histogram}, {0}};
