// Kernels taken from programs.
#include "bench.h"

static size_t matrix_product(void) {
  enum { N = 96 };
  static double a[N][N], b[N][N], c[N][N];
  __asm__ volatile("" : : "r"(a), "r"(b) : "memory");
  for (size_t i = 0; i < N; i++)
    for (size_t j = 0; j < N; j++) {
      double sum = 0;
      for (size_t k = 0; k < N; k++) sum += a[i][k] * b[k][j];
      c[i][j] = sum;
    }
  __asm__ volatile("" : : "r"(c) : "memory");
  return (size_t)N * N * N;
}

static size_t transpose(void) {
  enum { N = 1024 };
  static uint32_t *from, *to;
  if (!from) {
    from = pages(N * N * 4, SMALL);
    to = pages(N * N * 4, SMALL);
  }
  for (size_t i = 0; i < N; i++)
    for (size_t j = 0; j < N; j++) to[j * N + i] = from[i * N + j];
  __asm__ volatile("" : : "r"(to) : "memory");
  return (size_t)N * N;
}

// Multiplies a sparse matrix by a vector; an operation is an element.
static size_t sparse_product(void) {
  enum { ROWS = 20000, EACH = 8 };
  static uint32_t *columns;
  static double *values, *x, *y;
  if (!columns) {
    columns = malloc(ROWS * EACH * sizeof *columns);
    values = calloc(ROWS * EACH, sizeof *values);
    x = pages(16 * MIB, SMALL);
    y = calloc(ROWS, sizeof *y);
    for (size_t i = 0; i < ROWS * EACH; i++) columns[i] = random_word() % (16 * MIB / 8);
  }
  for (size_t row = 0; row < ROWS; row++) {
    double sum = 0;
    for (size_t i = row * EACH; i < (row + 1) * EACH; i++) sum += values[i] * x[columns[i]];
    y[row] = sum;
  }
  __asm__ volatile("" : : "r"(y) : "memory");
  return ROWS * EACH;
}

// Searches a random graph breadth first; an operation is an edge.
static size_t breadth_first(void) {
  enum { VERTICES = 1 << 16, EACH = 4 };
  static uint32_t *edges, *queue, *depth;
  if (!edges) {
    edges = malloc(VERTICES * EACH * sizeof *edges);
    queue = malloc(VERTICES * sizeof *queue);
    depth = malloc(VERTICES * sizeof *depth);
    for (size_t i = 0; i < VERTICES * EACH; i++) edges[i] = random_word() % VERTICES;
  }
  memset(depth, 0, VERTICES * sizeof *depth);
  size_t first = 0, last = 1, looked = 0;
  queue[0] = 0;
  depth[0] = 1;
  while (first < last) {
    uint32_t from = queue[first++];
    for (size_t i = 0; i < EACH; i++, looked++) {
      uint32_t to = edges[from * EACH + i];
      if (!depth[to]) {
        depth[to] = depth[from] + 1;
        queue[last++] = to;
      }
    }
  }
  return looked;
}

// Look-ups in a search tree of random shape; an operation is a look-up.
struct node {
  uint64_t key;
  struct node *child[2];
};
static size_t tree(void) {
  enum { NODES = 1 << 15, LOOKUPS = 5000 };
  static struct node *nodes;
  if (!nodes) {
    nodes = calloc(NODES, sizeof *nodes);
    for (size_t i = 0; i < NODES; i++) {
      nodes[i].key = random_word();
      struct node *at = &nodes[0];
      while (i > 0) {
        struct node **child = &at->child[nodes[i].key > at->key];
        if (!*child) {
          *child = &nodes[i];
          break;
        }
        at = *child;
      }
    }
  }
  uint64_t found = 0;
  for (size_t i = 0; i < LOOKUPS; i++) {
    uint64_t key = nodes[random_word() % NODES].key;
    struct node *at = nodes;
    while (at && at->key != key) {
      if (key > at->key)
        at = at->child[1];
      else
        at = at->child[0];
      __asm__ volatile("");
    }
    found += at != NULL;
  }
  KEEP(found);
  return LOOKUPS;
}

// Allocates blocks of random sizes, and frees an earlier one each time.
static size_t allocations(void) {
  static void *kept[1024];
  size_t count = 30000;
  for (size_t i = 0; i < count; i++) {
    uint64_t word = random_word();
    void **at = &kept[word % 1024];
    free(*at);
    *at = malloc(16 + (word >> 20) % 256);
    *(uint64_t *)*at = word;
  }
  return count;
}

// Words of a text, with the longest match at each place with the last place that began alike.
static size_t matches(void) {
  enum { BYTES = 100000 };
  static uint8_t *text;
  static uint32_t last[4096];
  if (!text) {
    text = malloc(BYTES + 64);
    for (size_t i = 0; i < BYTES + 64; i++)
      text[i] = i > 300 && random_word() % 8 ? text[i - 1 - random_word() % 4 * 50] : random_word() % 16;
  }
  uint64_t all = 0;
  for (size_t i = 0; i < BYTES; i++) {
    uint32_t *place = &last[(text[i] * 256u + text[i + 1] * 16u + text[i + 2]) % 4096];
    size_t before = *place, length = 0;
    while (length < 32 && text[before + length] == text[i + length]) length++;
    *place = i;
    all += length;
  }
  KEEP(all);
  return BYTES;
}

static size_t line_ends(void) {
  enum { BYTES = 300000 };
  static char *text;
  if (!text) {
    text = malloc(BYTES);
    for (size_t i = 0; i < BYTES; i++) text[i] = random_word() % 40 ? 'a' + i % 26 : '\n';
  }
  size_t lines = 0, longest = 0, length = 0;
  for (size_t i = 0; i < BYTES; i++) {
    if (text[i] == '\n') {
      if (length > longest) longest = length;
      length = 0;
      lines++;
    } else {
      length++;
    }
  }
  KEEP(lines);
  KEEP(longest);
  return BYTES;
}

const struct named programs[] = {
    {"matrix-product", matrix_product}, {"transpose", transpose},
    {"sparse-product", sparse_product}, {"breadth-first", breadth_first}, {"tree", tree},
    {"allocations", allocations}, {"matches", matches}, {"line-ends", line_ends}, {0}};
