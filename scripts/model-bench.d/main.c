// Prints ns an operation of a kernel: the fastest of so many rounds behind one that warms up.
//   kernels NAME ROUNDS | kernels    (the names, in order)
#include "bench.h"

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

int main(int argc, char **argv) {
  static struct named all[100];
  const struct named *lists[] = {chains, branches, arithmetic, memories, programs};
  size_t count = 0;
  for (size_t list = 0; list < sizeof lists / sizeof *lists; list++)
    for (const struct named *one = lists[list]; one->name; one++) all[count++] = *one;
  qsort(all, count, sizeof *all, by_name);
  if (argc != 3) {
    for (size_t i = 0; i < count; i++) puts(all[i].name);
    return 0;
  }
  for (size_t i = 0; i < count; i++) {
    if (strcmp(all[i].name, argv[1])) continue;
    all[i].kernel();
    double least = 1e300;
    for (long round = strtol(argv[2], NULL, 10); round > 0; round--) {
      double begin = now_ns();
      size_t operations = all[i].kernel();
      double each = (now_ns() - begin) / operations;
      if (each < least) least = each;
    }
    printf("%.4g\n", least);
    return 0;
  }
  fprintf(stderr, "expected a kernel's name, found `%s`\n", argv[1]);
  return 2;
}
