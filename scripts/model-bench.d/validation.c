// Kernels that the model was neither tuned to nor written for: kinds of work that the other lists
// lack.
#include "bench.h"

#include <pthread.h>
#include <sched.h>

// A list in random order; each node's payload is changed on the way.
struct item {
  struct item *next;
  uint64_t count, weight, unused[5];
};
static size_t list_update(void) {
  enum { ITEMS = 1 << 14 };
  static struct item *first;
  if (!first) {
    struct item *items = pages(ITEMS * sizeof *items, SMALL);
    for (size_t i = 0; i < ITEMS; i++)
      items[i] = (struct item){&items[(i * 0x5851f42d4c957f2du + 0x14057b7ef767814fu) % ITEMS], 0, i, {0}};
    first = items;
  }
  struct item *at = first;
  for (size_t i = 0; i < 2 * ITEMS; i++) {
    at->count += at->weight;
    at = at->next;
  }
  KEEP(at);
  return 2 * ITEMS;
}

static size_t string_search(void) {
  enum { BYTES = 60000 };
  static char *text;
  if (!text) {
    text = malloc(BYTES + 8);
    for (size_t i = 0; i < BYTES; i++) text[i] = 'a' + random_word() % 4;
    memcpy(text + BYTES, "abcdefg", 8);
  }
  const char *wanted = "abcdef";
  size_t at = 0;
  for (;; at++) {
    size_t same = 0;
    while (wanted[same] && text[at + same] == wanted[same]) same++;
    if (!wanted[same]) break;
  }
  KEEP(at);
  return at;
}

static size_t crc_by_slices(void) {
  enum { BYTES = 64 * KIB };
  static uint32_t tables[8][256];
  static uint8_t *text;
  if (!text) {
    text = malloc(BYTES);
    for (size_t i = 0; i < BYTES; i++) text[i] = random_word() >> 8;
    for (uint32_t i = 0; i < 256; i++) {
      uint32_t word = i;
      for (int bit = 0; bit < 8; bit++) word = word & 1 ? word >> 1 ^ 0x82f63b78u : word >> 1;
      tables[0][i] = word;
    }
    for (size_t table = 1; table < 8; table++)
      for (size_t i = 0; i < 256; i++)
        tables[table][i] = tables[table - 1][i] >> 8 ^ tables[0][tables[table - 1][i] & 255];
  }
  uint32_t crc = ~0u;
  for (size_t i = 0; i < BYTES; i += 8) {
    uint32_t low, high;
    memcpy(&low, text + i, 4);
    memcpy(&high, text + i + 4, 4);
    low ^= crc;
    crc = tables[7][low & 255] ^ tables[6][low >> 8 & 255] ^ tables[5][low >> 16 & 255] ^
          tables[4][low >> 24] ^ tables[3][high & 255] ^ tables[2][high >> 8 & 255] ^
          tables[1][high >> 16 & 255] ^ tables[0][high >> 24];
  }
  KEEP(crc);
  return BYTES;
}

static size_t running_sum(void) {
  enum { WORDS = 128 * KIB };
  static uint64_t *from, *to;
  if (!from) {
    from = pages(WORDS * 8, SMALL);
    to = pages(WORDS * 8, SMALL);
  }
  uint64_t sum = 0;
  for (size_t i = 0; i < WORDS; i++) {
    to[i] = sum += from[i];
    __asm__ volatile("" : : : "memory");
  }
  return WORDS;
}

static size_t transpose_by_blocks(void) {
  enum { N = 1024, BLOCK = 8 };
  static double *from, *to;
  if (!from) {
    from = pages(N * N * 8, SMALL);
    to = pages(N * N * 8, SMALL);
  }
  for (size_t row = 0; row < N; row += BLOCK)
    for (size_t column = 0; column < N; column += BLOCK)
      for (size_t i = row; i < row + BLOCK; i++)
        for (size_t j = column; j < column + BLOCK; j++) {
          to[j * N + i] = from[i * N + j];
          __asm__ volatile("" : : : "memory");
        }
  return N * N;
}

static size_t bloom_filter(void) {
  enum { WORDS = 128 * KIB, KEYS = 20000, HASHES = 4 };
  static uint64_t *filter;
  if (!filter) {
    filter = pages(WORDS * 8, SMALL);
    for (size_t i = 0; i < WORDS; i++) filter[i] = random_word() | random_word();
  }
  uint64_t present = 0;
  for (size_t i = 0; i < KEYS; i++) {
    uint64_t key = random_word(), step = key >> 32 | 1;
    int all = 1;
    for (size_t hash = 0; hash < HASHES && all; hash++, key += step)
      all = filter[key / 64 % WORDS] >> key % 64 & 1;
    present += all;
  }
  KEEP(present);
  return KEYS;
}

static uint32_t root(uint32_t *parents, uint32_t at) {
  while (parents[at] != at) at = parents[at] = parents[parents[at]];
  return at;
}
static size_t union_find(void) {
  enum { ELEMENTS = 1 << 17, UNIONS = 50000 };
  static uint32_t *parents;
  if (!parents) parents = pages(ELEMENTS * 4, SMALL);
  for (uint32_t i = 0; i < ELEMENTS; i++) parents[i] = i;
  for (size_t i = 0; i < UNIONS; i++) {
    uint64_t word = random_word();
    uint32_t a = root(parents, word % ELEMENTS), b = root(parents, (word >> 32) % ELEMENTS);
    parents[a] = b;
  }
  return UNIONS;
}

// Removes the smallest item of a heap, and inserts a later one.
static size_t heap_push_pop(void) {
  enum { ENTRIES = 8192, POPS = 10000 };
  static uint64_t *heap;
  if (!heap) {
    heap = malloc((ENTRIES + 1) * sizeof *heap);
    for (size_t i = 1; i <= ENTRIES; i++) heap[i] = i << 20;
  }
  for (size_t pop = 0; pop < POPS; pop++) {
    uint64_t last = heap[ENTRIES], next = heap[1] + random_word() % (1 << 30);
    size_t at = 1;
    for (size_t child; (child = 2 * at) < ENTRIES; at = child) {
      if (heap[child + 1] < heap[child] && child + 1 < ENTRIES) child++;
      if (last <= heap[child]) break;
      heap[at] = heap[child];
    }
    heap[at] = last;
    for (at = ENTRIES; at > 1 && next < heap[at / 2]; at /= 2) heap[at] = heap[at / 2];
    heap[at] = next;
  }
  return POPS;
}

// Copies literals, and pieces written a little earlier, byte by byte where they overlap.
static size_t unpack(void) {
  enum { BYTES = 64 * KIB };
  static uint8_t *out;
  static uint16_t *tokens;
  if (!out) {
    out = malloc(BYTES + 300);
    tokens = malloc(BYTES * sizeof *tokens);
    for (size_t i = 0; i < BYTES; i++) tokens[i] = random_word() >> 16;
  }
  size_t at = 0, token = 0;
  while (at < 256) out[at++] = token++;
  for (; at < BYTES; token++) {
    uint16_t word = tokens[token];
    size_t length = 3 + (word >> 8) % 16, back = 1 + (word & 255);
    if (word & 0x8000) {
      for (size_t i = 0; i < length; i++, at++) {
        out[at] = out[at - back];
        __asm__ volatile("" : : : "memory");
      }
    } else {
      memcpy(out + at, &tokens[token % 64], 8);
      at += 8;
    }
  }
  KEEP(at);
  return at;
}

static size_t bit_counts(void) {
  enum { WORDS = 4096 };
  static uint64_t words[WORDS];
  uint64_t all = 0;
  for (size_t i = 0; !words[0] && i < WORDS; i++) words[i] = random_word();
  for (size_t round = 0; round < 10; round++)
    for (size_t i = 0; i < WORDS; i++) {
      uint64_t word = words[i];
      KEEP(word);
      word -= word >> 1 & 0x5555555555555555u;
      word = (word & 0x3333333333333333u) + (word >> 2 & 0x3333333333333333u);
      word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu;
      all += word * 0x0101010101010101u >> 56;
      KEEP(all);
    }
  return 10 * WORDS;
}

static size_t shortest_paths(void) {
  enum { N = 64 };
  static uint32_t lengths[N][N];
  for (size_t i = 0; i < N; i++)
    for (size_t j = 0; j < N; j++) lengths[i][j] = random_word() % 1000;
  for (size_t k = 0; k < N; k++)
    for (size_t i = 0; i < N; i++)
      for (size_t j = 0; j < N; j++) {
        uint32_t through = lengths[i][k] + lengths[k][j];
        if (through < lengths[i][j]) lengths[i][j] = through;
        __asm__ volatile("" : : : "memory");
      }
  return (size_t)N * N * N;
}

static size_t stencil(void) {
  enum { N = 512 };
  static double *from, *to;
  if (!from) {
    from = pages(N * N * 8, SMALL);
    to = pages(N * N * 8, SMALL);
  }
  for (size_t i = 1; i < N - 1; i++)
    for (size_t j = 1; j < N - 1; j++) {
      double *at = &from[i * N + j];
      to[i * N + j] = 0.25 * (at[-1] + at[1] + at[-N] + at[N]) - at[0];
      __asm__ volatile("" : : : "memory");
    }
  return (N - 2) * (N - 2);
}

static size_t scatter(void) {
  enum { COUNTS = 1 << 19, ADDS = 100000 };
  static uint32_t *to;
  static float *values, *sums;
  if (!sums) {
    to = malloc(ADDS * sizeof *to);
    values = calloc(ADDS, sizeof *values);
    sums = pages(COUNTS * sizeof *sums, SMALL);
    for (size_t i = 0; i < ADDS; i++) to[i] = random_word() % COUNTS;
  }
  for (size_t i = 0; i < ADDS; i++) sums[to[i]] += values[i];
  __asm__ volatile("" : : "r"(sums) : "memory");
  return ADDS;
}

// Passes words from one thread to another.
enum { RING = 256, PASSED = 30000 };
static struct {
  volatile uint64_t written __attribute__((aligned(LINE)));
  volatile uint64_t taken __attribute__((aligned(LINE)));
  uint64_t words[RING] __attribute__((aligned(LINE)));
} ring;
static void *writes(void *unused) {
  for (size_t i = 0; i < PASSED; i++) {
    while (ring.written - ring.taken == RING) sched_yield();
    ring.words[ring.written % RING] = i;
    __atomic_store_n(&ring.written, ring.written + 1, __ATOMIC_RELEASE);
  }
  return unused;
}
static size_t ring_buffer(void) {
  pthread_t writer;
  uint64_t sum = 0;
  if (pthread_create(&writer, NULL, writes, NULL)) exit(1);
  for (size_t i = 0; i < PASSED; i++) {
    while (__atomic_load_n(&ring.written, __ATOMIC_ACQUIRE) == ring.taken) sched_yield();
    sum += ring.words[ring.taken % RING];
    ring.taken++;
  }
  pthread_join(writer, NULL);
  KEEP(sum);
  return PASSED;
}

// A tree of sorted nodes of 16 keys, searched level by level.
static size_t page_tree(void) {
  enum { KEYS = 16, LEAVES = 1 << 16, LOOKUPS = 5000 };
  static uint32_t *levels[4];
  static const size_t counts[4] = {LEAVES / 4096, LEAVES / 256, LEAVES / 16, LEAVES};
  if (!levels[0])
    for (size_t level = 0; level < 4; level++) {
      levels[level] = pages(counts[level] * KEYS * 4, SMALL);
      uint32_t step = LEAVES / counts[level];
      for (uint32_t i = 0; i < counts[level] * KEYS; i++) levels[level][i] = i * step;
    }
  uint64_t found = 0;
  for (size_t i = 0; i < LOOKUPS; i++) {
    uint32_t wanted = random_word() % (LEAVES * KEYS);
    size_t node = wanted / (4096 * KEYS);
    for (size_t level = 0; level < 4; level++) {
      uint32_t *keys = levels[level] + node * KEYS;
      size_t key = 0;
      while (key + 1 < KEYS && keys[key + 1] <= wanted) key++;
      node = node * KEYS + key;
    }
    found += node;
  }
  KEEP(found);
  return LOOKUPS;
}

// Finds the ends of strings, the depth of brackets, and the sum of numbers.
static size_t structured_text(void) {
  enum { BYTES = 50000 };
  static char *text;
  if (!text) {
    static const char *const parts[] = {"{\"name\": ", "\"some\\\"text\", ", "[1, 23, 456], ", "-17.25, ", "true, ", "{}, "};
    text = malloc(BYTES + 32);
    for (size_t at = 0; at < BYTES;) {
      const char *part = parts[random_word() % 6];
      memcpy(text + at, part, strlen(part) + 1);
      at += strlen(part);
    }
  }
  size_t depth = 0, texts = 0;
  uint64_t sum = 0, number = 0;
  for (size_t i = 0; i < BYTES; i++) {
    char byte = text[i];
    switch (byte) {
      case '{': case '[': depth++; break;
      case '}': case ']': depth--; break;
      case '"':
        for (i++; text[i] != '"'; i++)
          if (text[i] == '\\') i++;
        texts++;
        break;
      case ',': sum += number; number = 0; break;
      default:
        if (byte >= '0' && byte <= '9') number = number * 10 + byte - '0';
    }
  }
  KEEP(depth);
  KEEP(texts);
  KEEP(sum);
  return BYTES;
}

static const uint16_t lengths[16] = {1, 3, 8, 15, 16, 24, 33, 64, 100, 128, 200, 256, 500, 1024, 1500, 4096};
static size_t fills(void) {
  static char *to;
  if (!to) to = pages(64 * KIB, SMALL);
  for (size_t i = 0; i < 4000; i++) {
    size_t length = lengths[i * 7 % 16];
    KEEP(length);
    memset(to + i % 8 * 4160, (int)i, length);
  }
  return 4000;
}
static size_t moves(void) {
  static char *at;
  if (!at) at = pages(64 * KIB, SMALL);
  for (size_t i = 0; i < 4000; i++) {
    size_t length = lengths[i * 7 % 16];
    KEEP(length);
    memmove(at + i % 8 * 4160 + 24, at + i % 8 * 4160, length);
  }
  return 4000;
}

static size_t random_walk(void) {
  enum { VERTICES = 1 << 16, EACH = 8, STEPS = 20000 };
  static uint32_t *edges, at;
  if (!edges) {
    edges = pages(VERTICES * EACH * 4, SMALL);
    for (size_t i = 0; i < VERTICES * EACH; i++) edges[i] = random_word() % VERTICES;
  }
  for (size_t i = 0; i < STEPS; i++) at = edges[at * EACH + random_word() % EACH];
  return STEPS;
}

#define ORDER(a, b)                                       \
  do {                                                    \
    uint32_t low = a < b ? a : b, high = a < b ? b : a;   \
    a = low;                                              \
    b = high;                                             \
    KEEP(a);                                              \
    KEEP(b);                                              \
  } while (0)
static size_t sorting_network(void) {
  enum { WORDS = 4096 };
  static uint32_t words[WORDS];
  for (size_t i = 0; !words[0] && i < WORDS; i++) words[i] = random_word();
  for (size_t round = 0; round < 4; round++)
    for (size_t i = 0; i < WORDS; i += 4) {
      uint32_t a = words[i], b = words[i + 1], c = words[i + 2], d = words[i + 3];
      ORDER(a, b);
      ORDER(c, d);
      ORDER(a, c);
      ORDER(b, d);
      ORDER(b, c);
      words[i] = d; words[i + 1] = a; words[i + 2] = c; words[i + 3] = b;
    }
  return WORDS;
}

static size_t hash_inserts(void) {
  enum { SLOTS = 4096, INSERTS = 2500 };
  static struct {
    uint64_t key, value;
  } slots[SLOTS];
  memset(slots, 0, sizeof slots);
  for (uint64_t i = 0; i < INSERTS; i++) {
    uint64_t key = random_word() | 1, at = key * 0x9e3779b97f4a7c15u >> 52;
    while (slots[at].key && slots[at].key != key) at = (at + 1) % SLOTS;
    slots[at].key = key;
    slots[at].value += i;
  }
  return INSERTS;
}

static size_t mandelbrot(void) {
  size_t steps = 0;
  for (int row = 0; row < 24; row++)
    for (int column = 0; column < 24; column++) {
      double x = 0, y = 0, a = column / 9.0 - 2, b = row / 12.0 - 1;
      for (int step = 0; step < 100 && x * x + y * y < 4; step++, steps++) {
        double next = x * x - y * y + a;
        y = 2 * x * y + b;
        x = next;
      }
      KEEP_FP(x);
    }
  return steps;
}

static size_t bodies(void) {
  enum { BODIES = 48 };
  static double at[BODIES][4], pull[BODIES][4];
  for (size_t i = 0; at[1][0] == 0 && i < BODIES; i++)
    for (size_t j = 0; j < 4; j++) at[i][j] = 1 + (double)(random_word() % 1000);
  for (size_t i = 0; i < BODIES; i++)
    for (size_t j = 0; j < BODIES; j++) {
      double x = at[j][0] - at[i][0], y = at[j][1] - at[i][1], z = at[j][2] - at[i][2];
      double square = x * x + y * y + z * z + 0.01, distance = square;
      __asm__("sqrtsd %0, %0" : "+x"(distance));
      double by = at[j][3] / (square * distance);
      pull[i][0] += x * by;
      pull[i][1] += y * by;
      pull[i][2] += z * by;
      __asm__ volatile("" : : : "memory");
    }
  return BODIES * BODIES;
}

static size_t edit_distance(void) {
  enum { LENGTH = 256 };
  static uint8_t a[LENGTH], b[LENGTH];
  static uint16_t row[LENGTH + 1];
  for (size_t i = 0; !a[0] && i < LENGTH; i++) {
    a[i] = 'a' + random_word() % 4;
    b[i] = 'a' + random_word() % 4;
  }
  for (size_t j = 0; j <= LENGTH; j++) row[j] = j;
  for (size_t i = 0; i < LENGTH; i++) {
    uint16_t corner = row[0], left = ++row[0];
    for (size_t j = 0; j < LENGTH; j++) {
      uint16_t above = row[j + 1], least = corner + (a[i] != b[j]);
      if (above + 1 < least) least = above + 1;
      if (left + 1 < least) least = left + 1;
      corner = above;
      row[j + 1] = left = least;
    }
  }
  __asm__ volatile("" : : "r"(row) : "memory");
  return LENGTH * LENGTH;
}

const struct named validation[] = {
    {"list-update", list_update}, {"string-search", string_search},
    {"crc-by-slices", crc_by_slices}, {"running-sum", running_sum},
    {"transpose-by-blocks", transpose_by_blocks}, {"bloom-filter", bloom_filter},
    {"union-find", union_find}, {"heap-push-pop", heap_push_pop}, {"unpack", unpack},
    {"bit-counts", bit_counts}, {"shortest-paths", shortest_paths}, {"stencil", stencil},
    {"scatter", scatter}, {"ring-buffer", ring_buffer}, {"page-tree", page_tree},
    {"structured-text", structured_text}, {"fills", fills}, {"moves", moves},
    {"random-walk", random_walk}, {"sorting-network", sorting_network},
    {"hash-inserts", hash_inserts}, {"mandelbrot", mandelbrot}, {"bodies", bodies},
    {"edit-distance", edit_distance}, {0}};
