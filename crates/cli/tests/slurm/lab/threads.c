/* A rank with threads of OpenMP that work for a minute, in memory which the first touched. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

int main(void) {
  size_t size = 32 << 20;
  char *memory = malloc(size);
  if (!memory) return 1;
  memset(memory, 1, size);
  time_t until = time(NULL) + 60;
#pragma omp parallel
  while (time(NULL) < until) {
    volatile char *byte = memory;
    for (size_t at = 0; at < size; at += 4096) (void)byte[at];
  }
  return 0;
}
