// The time of instructions themselves.
#include "bench.h"

#define CHAIN(name, type, keep, first, step)        \
  static size_t name(void) {                        \
    size_t count = 300000;                          \
    type x = first;                                 \
    for (size_t i = 0; i < count; i++) {            \
      step;                                         \
      keep(x);                                      \
    }                                               \
    return count;                                   \
  }
CHAIN(fp_add, double, KEEP_FP, 1, x += 1.5)
CHAIN(fp_multiply, double, KEEP_FP, 1, x *= 1.0000001)
CHAIN(fp_divide, double, KEEP_FP, 1e9, x = 3.0 / x)
CHAIN(int_multiply, uint64_t, KEEP, 3, x *= 0x9e3779b97f4a7c15u)
CHAIN(int_divide, uint64_t, KEEP, 12345678901u, x = (0xffffffffffffu / (x | 1)) + 77777)
CHAIN(shifts, uint64_t, KEEP, 88172645463325252u, x ^= x << 13; x ^= x >> 7; x ^= x << 17)

// Eight chains side by side, enough to occupy the units.
static size_t fp_add_wide(void) {
  size_t count = 100000;
  double a = 1, b = 1, c = 1, d = 1, e = 1, f = 1, g = 1, h = 1;
  for (size_t i = 0; i < count; i++) {
    a += 1.5; b += 1.5; c += 1.5; d += 1.5; e += 1.5; f += 1.5; g += 1.5; h += 1.5;
    KEEP_FP(a); KEEP_FP(b); KEEP_FP(c); KEEP_FP(d);
    KEEP_FP(e); KEEP_FP(f); KEEP_FP(g); KEEP_FP(h);
  }
  return count * 8;
}
static size_t int_multiply_wide(void) {
  size_t count = 100000;
  uint64_t a = 3, b = 5, c = 7, d = 9, e = 11, f = 13;
  for (size_t i = 0; i < count; i++) {
    a *= 3; b *= 5; c *= 7; d *= 9; e *= 11; f *= 13;
    a *= a; b *= b; c *= c; d *= d; e *= e; f *= f;
    KEEP(a); KEEP(b); KEEP(c); KEEP(d); KEEP(e); KEEP(f);
  }
  return count * 6;
}
static size_t adds_wide(void) {
  size_t count = 200000;
  uint64_t a = 1, b = 2, c = 3, d = 4;
  for (size_t i = 0; i < count; i++) {
    a += i; b += i; c += i; d += i;
    KEEP(a); KEEP(b); KEEP(c); KEEP(d);
  }
  return count * 4;
}

#define SUM(name, type, keep, bytes, rounds)                                        \
  static size_t name(void) {                                                        \
    static type *words;                                                             \
    type sum = 0;                                                                   \
    if (!words) words = pages(bytes, SMALL);                                        \
    for (size_t round = 0; round < rounds; round++)                                 \
      for (size_t i = 0; i < bytes / sizeof(type); i++) {                           \
        sum += words[i];                                                            \
        keep(sum);                                                                  \
      }                                                                             \
    return rounds * (bytes / sizeof(type));                                         \
  }
SUM(sum_int_16k, uint64_t, KEEP, 16 * KIB, 200)
SUM(sum_int_256k, uint64_t, KEEP, 256 * KIB, 15)
SUM(sum_int_64m, uint64_t, KEEP, (size_t)64 * MIB, 1)
SUM(sum_double_256k, double, KEEP_FP, 256 * KIB, 15)
SUM(sum_double_64m, double, KEEP_FP, (size_t)64 * MIB, 1)

static size_t horner(void) {
  static double c[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  size_t count = 20000;
  double x = 0.5, all = 0;
  for (size_t i = 0; i < count; i++) {
    double value = 0;
    for (size_t j = 0; j < 16; j++) value = value * x + c[j];
    x = value * 1e-3;
    KEEP_FP(x);
    all += value;
  }
  KEEP_FP(all);
  return count;
}

static size_t crc(void) {
  static uint32_t table[256];
  static uint8_t text[16 * KIB];
  for (uint32_t i = 0; i < 256 && !table[255]; i++) {
    uint32_t word = i;
    for (int bit = 0; bit < 8; bit++) word = word & 1 ? word >> 1 ^ 0xedb88320u : word >> 1;
    table[i] = word;
  }
  uint32_t word = ~0u;
  for (size_t round = 0; round < 10; round++)
    for (size_t i = 0; i < sizeof text; i++) word = table[(word ^ text[i]) & 255] ^ word >> 8;
  KEEP(word);
  return 10 * sizeof text;
}

const struct named arithmetic[] = {
    {"fp-add", fp_add}, {"fp-add-wide", fp_add_wide}, {"fp-multiply", fp_multiply},
    {"fp-divide", fp_divide}, {"int-multiply", int_multiply},
    {"int-multiply-wide", int_multiply_wide}, {"int-divide", int_divide}, {"shifts", shifts},
    {"adds-wide", adds_wide}, {"sum-int-16k", sum_int_16k}, {"sum-int-256k", sum_int_256k},
    {"sum-int-64m", sum_int_64m}, {"sum-double-256k", sum_double_256k},
    {"sum-double-64m", sum_double_64m}, {"horner", horner}, {"crc", crc}, {0}};
