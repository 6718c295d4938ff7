/* Programs with a known right placement, by name:
 *   first-touch   one thread touches a block that four read by quarters (made on the line MADE,
 *                 touched on the line FIRST)
 *   false-sharing four threads count in one cache line (stored on the line COUNTS), and the first
 *                 adds their counts
 *   one-node      one thread works on its own block
 *   table         four threads read the whole of a table that one wrote
 *   streams       four threads stream through separate blocks
 *   compute       four threads compute in registers
 *   hand-over     one thread writes what another one reads
 *   hot-node      the program binds the block to node 1, and four threads of all nodes chase in it
 *   neighbours    threads 1 and 2, and 3 and 4, read what each of the two touched
 *   migrating     one thread fills the block, goes to another cpu (third word, 3), and works there
 *   pages         four threads load from the pages of their parts in random order, after
 *                 writing them
 *   scattered     one thread loads from all over the block, each load after the one before
 *   bandwidth     four threads copy one half of a block that one touched to the other
 *   mixed         first-touch, and as much time in registers
 * A second word is the block's size in MiB (8).
 */
#define _GNU_SOURCE
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS 4
static size_t bytes = (size_t)8 << 20;
static volatile char *block;
static const char *how;
static volatile size_t found;
static int last_cpu = 3;
static pthread_barrier_t together;
static struct { volatile long count[8]; } __attribute__((aligned(64))) counts;

static void read_lines(volatile char *from, size_t size, int rounds) {
  for (int round = 0; round < rounds; round++)
    for (size_t at = 0; at < size; at += 64)
      (void)from[at];
}

/* Each load decides where the next one is. */
static size_t chase(volatile char *from, size_t size, size_t steps, size_t seed) {
  size_t at = seed;
  for (size_t step = 0; step < steps; step++)
    at = at * 6364136223846793005u + 1442695040888963407u + from[(at >> 20) % size];
  return at;
}

static uint64_t compute(uint64_t sum, size_t turns) {
  for (size_t turn = 0; turn < turns; turn++)
    sum = sum * 6364136223846793005u + 1442695040888963407u;
  return sum;
}

/* A line of each page, page after page by a step that meets all of them. */
static size_t load_pages(volatile char *from, size_t size, size_t loads) {
  size_t pages = size / 4096, page = 0, sum = 0;
  for (size_t load = 0; load < loads; load++) {
    sum += from[page * 4096 + page % 64 * 64];
    page = (page + 4099) % pages;
  }
  return sum;
}

static void migrate(void) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(last_cpu, &cpus);
  /* This host may lack it, but the emulated machine has it. */
  syscall(SYS_sched_setaffinity, 0, sizeof cpus, &cpus);
}

static void *work(void *number) {
  size_t own = (size_t)number, part = bytes / THREADS;
  pthread_barrier_wait(&together);
  if (!strcmp(how, "first-touch")) {
    read_lines(block + own * part, part, 4);
  } else if (!strcmp(how, "false-sharing")) {
    for (int turn = 0; turn < (int)(bytes / 14); turn++)
      counts.count[own]++; /* COUNTS */
  } else if (!strcmp(how, "one-node")) {
    if (own == 0)
      found = chase(block, bytes, bytes / 40, 1);
  } else if (!strcmp(how, "table")) {
    return (void *)chase(block, bytes, bytes / 80, own);
  } else if (!strcmp(how, "streams")) {
    volatile char *mine = malloc(part);
    memset((char *)mine, 1, part);
    read_lines(mine, part, 4);
  } else if (!strcmp(how, "compute")) {
    return (void *)compute(own, bytes / 3);
  } else if (!strcmp(how, "hand-over")) {
    for (int turn = 0; turn < 8; turn++) {
      if (own == 0)
        memset((char *)block, turn, bytes / 8);
      pthread_barrier_wait(&together);
      if (own == 1)
        read_lines(block, bytes / 8, 1);
      pthread_barrier_wait(&together);
    }
  } else if (!strcmp(how, "neighbours")) {
    memset((char *)block + own * part, 1, part);
    pthread_barrier_wait(&together);
    read_lines(block + own / 2 * 2 * part, 2 * part, 4);
  } else if (!strcmp(how, "hot-node")) {
    return (void *)chase(block, bytes, bytes / 80, own);
  } else if (!strcmp(how, "migrating")) {
    if (own == 0) {
      memset((char *)block, 1, bytes);
      migrate();
      found = chase(block, bytes, bytes / 40, 1);
    }
  } else if (!strcmp(how, "pages")) {
    memset((char *)block + own * part, 1, part);
    return (void *)load_pages(block + own * part, part, bytes / 40);
  } else if (!strcmp(how, "scattered")) {
    if (own == 0)
      found = chase(block, bytes, bytes / 80, 1);
  } else if (!strcmp(how, "bandwidth")) {
    for (int round = 0; round < 4; round++)
      memcpy((char *)block + own * part, (char *)block + own * part + part / 2, part / 2);
  } else if (!strcmp(how, "mixed")) {
    read_lines(block + own * part, part, 4);
    found = compute(own, bytes / 4);
  }
  pthread_barrier_wait(&together);
  return 0;
}

static int touches_first(void) {
  static const char *const programs[] = {"first-touch", "table", "one-node", "hot-node", "scattered", "bandwidth", "mixed"};
  for (size_t at = 0; at < sizeof programs / sizeof *programs; at++)
    if (!strcmp(how, programs[at]))
      return 1;
  return 0;
}

int main(int words, char **word) {
  how = words > 1 ? word[1] : "compute";
  if (words > 2)
    bytes = (size_t)atoi(word[2]) << 20;
  if (words > 3)
    last_cpu = atoi(word[3]);
  block = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* MADE */
  unsigned long node1 = 2;
  if (!strcmp(how, "hot-node"))
    syscall(SYS_mbind, block, bytes, MPOL_BIND, &node1, 64UL, 0);
  if (touches_first())
    memset((char *)block, 0, bytes); /* FIRST */
  pthread_t threads[THREADS];
  pthread_barrier_init(&together, 0, THREADS);
  for (size_t number = 0; number < THREADS; number++)
    pthread_create(&threads[number], 0, work, (void *)number);
  for (int number = 0; number < THREADS; number++)
    pthread_join(threads[number], 0);
  for (int number = 0; number < THREADS; number++)
    found += counts.count[number];
  return 0;
}
