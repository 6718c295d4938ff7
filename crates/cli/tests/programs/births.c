/* Thread N of 24 adds 1000 * (N + 1) times and waits for the others, so that its number of loads
 * identifies it. */
#include <pthread.h>

#define THREADS 24
static pthread_barrier_t together;
static volatile long sums[THREADS][8];

static void *add(void *number) {
  for (long turn = 0; turn < 1000 * ((long)number + 1); turn++)
    sums[(long)number][0]++;
  pthread_barrier_wait(&together);
  return 0;
}

int main(void) {
  pthread_t threads[THREADS];
  pthread_barrier_init(&together, 0, THREADS);
  for (long number = 0; number < THREADS; number++)
    pthread_create(&threads[number], 0, add, (void *)number);
  for (int number = 0; number < THREADS; number++)
    pthread_join(threads[number], 0);
  return 0;
}
