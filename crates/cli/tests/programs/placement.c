/* Four threads read a quarter each of a block, three times over.
 *   first   the first thread touches all of it before
 *   own     each thread touches its own quarter
 *   bound   as first, but the block is bound to node 1 (mbind)
 *   moved   as first, and then moved to node 1 (mbind with MPOL_MF_MOVE)
 */
#include <linux/mempolicy.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BYTES ((size_t)4 << 20)
static volatile char *block;
static int own;
static pthread_barrier_t together;

static void *read_quarter(void *number) {
  volatile char *quarter = block + (long)number * (BYTES / 4);
  if (own)
    memset((char *)quarter, 1, BYTES / 4);
  /* A thread that ended would leave its cpu to the next one. */
  pthread_barrier_wait(&together);
  for (int round = 0; round < 3; round++)
    for (size_t at = 0; at < BYTES / 4; at += 64)
      (void)quarter[at];
  return 0;
}

int main(int count, char **words) {
  const char *how = count > 1 ? words[1] : "first";
  unsigned long node1 = 2;
  block = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  own = !strcmp(how, "own");
  /* This host may lack node 1, but the emulated machine has it. */
  if (!strcmp(how, "bound"))
    syscall(SYS_mbind, block, BYTES, MPOL_BIND, &node1, 64UL, 0);
  if (!own)
    memset((char *)block, 1, BYTES);
  if (!strcmp(how, "moved"))
    syscall(SYS_mbind, block, BYTES, MPOL_BIND, &node1, 64UL, MPOL_MF_MOVE);
  pthread_t threads[4];
  pthread_barrier_init(&together, 0, 4);
  for (long number = 0; number < 4; number++)
    pthread_create(&threads[number], 0, read_quarter, (void *)number);
  for (int number = 0; number < 4; number++)
    pthread_join(threads[number], 0);
  return count > 2 ? 7 : 0;
}
