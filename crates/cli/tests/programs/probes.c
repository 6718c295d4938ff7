// Time per operation in ns, on a machine or on a model of it: the median of nine rounds.
//
//   probes chase KIB | chains 2|4|8 | reads|writes|triads|updates THREADS | searches | sorts |
//          products | counts BYTES-APART
//
// Each thread is bound to a CPU, and memory is on pages of 4 KiB.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { LINE = 64, ROUNDS = 9, THREADS = 2, BIG = 64 << 20 };

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static uint64_t random_state = 88172645463325252u;

static uint64_t random_word(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  return random_state ^= random_state << 17;
}

static void *memory(size_t bytes) {
  void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) {
    perror("mmap");
    exit(1);
  }
  madvise(at, bytes, MADV_NOHUGEPAGE);
  memset(at, 1, bytes);
  return at;
}

static void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

// A part of the work; returns its number of operations.
typedef size_t work(int thread);

static size_t count;
static char *buffer, *other, *third;

// One cycle through all lines, in random order.
static void make_chase(size_t bytes) {
  size_t lines = bytes / LINE;
  uint32_t *order = malloc(lines * sizeof *order);
  buffer = memory(bytes);
  for (size_t i = 0; i < lines; i++) order[i] = i;
  for (size_t i = lines - 1; i > 0; i--) {
    size_t j = random_word() % (i + 1);
    uint32_t kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
  for (size_t i = 0; i < lines; i++)
    *(char **)(buffer + (size_t)order[i] * LINE) = buffer + (size_t)order[(i + 1) % lines] * LINE;
  free(order);
}

static size_t chase(int thread) {
  static char *at;
  size_t loads = 200000;
  if (!at) at = buffer;
  for (size_t i = 0; i < loads; i++) at = *(char *volatile *)at;
  return loads;
}

#define STEP(at) at = *(char *volatile *)at;

// `count` chases at once from different places; their positions stay in registers.
static size_t chains(int thread) {
  static size_t round;
  size_t loads = 50000;
  char *at[8];
  for (size_t i = 0; i < 8; i++) at[i] = buffer + BIG / 8 * i + LINE * 4001 * round;
  round++;
  char *a = at[0], *b = at[1], *c = at[2], *d = at[3], *e = at[4], *f = at[5], *g = at[6], *h = at[7];
  if (count == 2)
    for (size_t i = 0; i < loads; i++) { STEP(a) STEP(b) }
  else if (count == 4)
    for (size_t i = 0; i < loads; i++) { STEP(a) STEP(b) STEP(c) STEP(d) }
  else
    for (size_t i = 0; i < loads; i++) {
      STEP(a) STEP(b) STEP(c) STEP(d) STEP(e) STEP(f) STEP(g) STEP(h)
    }
  char *volatile last = (char *)((uintptr_t)a ^ (uintptr_t)b ^ (uintptr_t)c ^ (uintptr_t)d ^
                                 (uintptr_t)e ^ (uintptr_t)f ^ (uintptr_t)g ^ (uintptr_t)h);
  (void)last;
  return loads;
}

// Streams: an operation is a line of each array. A thread has its own part.
static char *part(char *array, int thread) { return array + BIG / THREADS * thread; }

static size_t reads(int thread) {
  char *at = part(buffer, thread);
  uint64_t sum = 0;
  for (size_t i = 0; i < BIG / THREADS; i += 8) sum += *(uint64_t *)(at + i);
  *(volatile uint64_t *)part(third, thread) = sum;
  return BIG / THREADS / LINE;
}

static size_t writes(int thread) {
  uint64_t *at = (uint64_t *)part(buffer, thread);
  for (size_t i = 0; i < BIG / THREADS / 8; i++) ((volatile uint64_t *)at)[i] = i;
  return BIG / THREADS / LINE;
}

static size_t triads(int thread) {
  double *a = (double *)part(buffer, thread), *b = (double *)part(other, thread);
  double *c = (double *)part(third, thread);
  for (size_t i = 0; i < BIG / THREADS / 8; i++) a[i] = b[i] + 3.0 * c[i];
  return BIG / THREADS / LINE;
}

// Independent updates of random words.
static size_t updates(int thread) {
  size_t updates = 200000;
  uint64_t at = 1 + thread;
  for (size_t i = 0; i < updates; i++) {
    at = at * 6364136223846793005u + 1442695040888963407u;
    ((uint64_t *)buffer)[at >> (64 - 23)] ^= at;
  }
  return updates;
}

// Binary search without branches: each step waits for the one before.
static size_t searches(int thread) {
  size_t searches = 20000, words = BIG / 8;
  volatile uint64_t sum = 0;
  for (size_t i = 0; i < searches; i++) {
    uint64_t wanted = random_word() % words;
    uint64_t *base = (uint64_t *)buffer;
    for (size_t half = words / 2; half > 0; half /= 2) base += half * (base[half] <= wanted);
    sum += *base;
  }
  return searches;
}

static void make_sorted(void) {
  buffer = memory(BIG);
  for (size_t i = 0; i < BIG / 8; i++) ((uint64_t *)buffer)[i] = i;
}

static int ascending(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

// Branches that nothing predicts.
static size_t sorts(int thread) {
  size_t words = 100000;
  for (size_t i = 0; i < words; i++) ((uint32_t *)buffer)[i] = random_word();
  qsort(buffer, words, sizeof(uint32_t), ascending);
  return words;
}

// Columns of a matrix of 512 x 512, so that its lines are loaded repeatedly.
static size_t products(int thread) {
  enum { N = 512, ROWS = 8 };
  double *a = (double *)buffer, *b = (double *)other, *c = (double *)third;
  for (size_t i = 0; i < ROWS; i++)
    for (size_t j = 0; j < N; j++) {
      double sum = 0;
      for (size_t k = 0; k < N; k++) sum += a[i * N + k] * b[k * N + j];
      c[i * N + j] = sum;
    }
  return (size_t)ROWS * N * N;
}

// Two threads that store to one line, or to one each.
static size_t counts(int thread) {
  size_t adds = 100000;
  uint64_t *mine = (uint64_t *)(buffer + thread * count);
  for (size_t i = 0; i < adds; i++) __atomic_fetch_add(mine, 1, __ATOMIC_RELAXED);
  return adds;
}

static work *part_of_work;
static pthread_barrier_t barrier;
static double rounds_ns[ROUNDS];

static void *works(void *argument) {
  int thread = (int)(intptr_t)argument;
  pin(thread);
  for (int round = 0; round < ROUNDS; round++) {
    pthread_barrier_wait(&barrier);
    double begin = now_ns();
    size_t operations = part_of_work(thread);
    pthread_barrier_wait(&barrier);
    if (thread == 0) rounds_ns[round] = (now_ns() - begin) / operations;
  }
  return NULL;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void run(work *wanted, int threads) {
  pthread_t started[THREADS];
  part_of_work = wanted;
  pthread_barrier_init(&barrier, NULL, threads);
  for (int i = 0; i < threads; i++) pthread_create(&started[i], NULL, works, (void *)(intptr_t)i);
  for (int i = 0; i < threads; i++) pthread_join(started[i], NULL);
  qsort(rounds_ns, ROUNDS, sizeof *rounds_ns, by_value);
  printf("%.4g\n", rounds_ns[ROUNDS / 2]);
}

static void make_arrays(void) {
  buffer = memory(BIG);
  other = memory(BIG);
  third = memory(BIG);
}

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "";
  count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (!strcmp(name, "chase")) {
    make_chase(count << 10);
    run(chase, 1);
  } else if (!strcmp(name, "chains") && (count == 2 || count == 4 || count == 8)) {
    make_chase(BIG);
    run(chains, 1);
  } else if (!strcmp(name, "searches")) {
    make_sorted();
    run(searches, 1);
  } else {
    make_arrays();
    struct { const char *name; work *work; int threads; } all[] = {
        {"reads", reads, count},       {"writes", writes, count},   {"triads", triads, count},
        {"updates", updates, count},   {"sorts", sorts, 1},         {"products", products, 1},
        {"counts", counts, THREADS},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
      if (!strcmp(name, all[i].name) && all[i].threads >= 1 && all[i].threads <= THREADS) {
        run(all[i].work, all[i].threads);
        return 0;
      }
    fprintf(stderr, "expected a probe and its number, such as `chase 64` (KiB), found `%s`\n", name);
    return 2;
  }
}
