/* Programs whose right placement is known, by name:
 *   first-touch   one thread touches a block that four read by quarters (touched on the line FIRST)
 *   false-sharing four threads count in one cache line (stored on the line COUNTS)
 *   one-node      one thread works on its own block
 *   table         four threads read the whole of a table that one wrote
 *   streams       four threads stream through blocks of their own
 *   compute       four threads compute in registers
 *   hand-over     one thread writes what another one reads
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#define BYTES ((size_t)8 << 20)
static volatile char *block;
static const char *how;
static volatile size_t found;
static pthread_barrier_t together;
static struct { volatile long count[8]; } __attribute__((aligned(64))) counts;

static void read_lines(volatile char *from, size_t bytes, int rounds) {
  for (int round = 0; round < rounds; round++)
    for (size_t at = 0; at < bytes; at += 64)
      (void)from[at];
}

/* Each load decides where the next one is. */
static size_t chase(volatile char *from, size_t bytes, size_t steps, size_t seed) {
  size_t at = seed;
  for (size_t step = 0; step < steps; step++)
    at = at * 6364136223846793005u + 1442695040888963407u + from[(at >> 20) % bytes];
  return at;
}

static void *work(void *number) {
  size_t own = (size_t)number, part = BYTES / THREADS;
  pthread_barrier_wait(&together);
  if (!strcmp(how, "first-touch")) {
    read_lines(block + own * part, part, 4);
  } else if (!strcmp(how, "false-sharing")) {
    for (int turn = 0; turn < 600000; turn++)
      counts.count[own]++; /* COUNTS */
  } else if (!strcmp(how, "one-node")) {
    if (own == 0)
      found = chase(block, BYTES, 200000, 1);
  } else if (!strcmp(how, "table")) {
    return (void *)chase(block, BYTES, 100000, own);
  } else if (!strcmp(how, "streams")) {
    volatile char *mine = malloc(part);
    memset((char *)mine, 1, part);
    read_lines(mine, part, 4);
  } else if (!strcmp(how, "compute")) {
    uint64_t sum = own;
    for (int turn = 0; turn < 3000000; turn++)
      sum = sum * 6364136223846793005u + 1442695040888963407u;
    return (void *)sum;
  } else if (!strcmp(how, "hand-over")) {
    for (int turn = 0; turn < 8; turn++) {
      if (own == 0)
        memset((char *)block, turn, BYTES / 8);
      pthread_barrier_wait(&together);
      if (own == 1)
        read_lines(block, BYTES / 8, 1);
      pthread_barrier_wait(&together);
    }
  }
  pthread_barrier_wait(&together);
  return 0;
}

int main(int words, char **word) {
  how = words > 1 ? word[1] : "compute";
  block = malloc(BYTES);
  if (!strcmp(how, "first-touch") || !strcmp(how, "table") || !strcmp(how, "one-node"))
    memset((char *)block, 0, BYTES); /* FIRST */
  pthread_t threads[THREADS];
  pthread_barrier_init(&together, 0, THREADS);
  for (size_t number = 0; number < THREADS; number++)
    pthread_create(&threads[number], 0, work, (void *)number);
  for (int number = 0; number < THREADS; number++)
    pthread_join(threads[number], 0);
  return 0;
}
