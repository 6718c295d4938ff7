// Prints the ns of an operation of a kernel: the fastest of ROUNDS rounds after a warm-up.
//   kernels NAME ROUNDS [CYCLE_NS] | kernels    (the names in order, each behind the half that it is in)
// With CYCLE_NS, at a core clock near that of a machine file and while the core's other thread is idle: hosts
// change both with what neighbours do.
#include "bench.h"

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

struct clock {
  double cycle_ns, branch_cycles;
};

// Dependent additions take a cycle each. So does a loop of one branch, but it takes twice as long
// while the core's other thread is busy.
static struct clock clock_now(void) {
  uint64_t sum = 1, step = 3, left = 2000;
  double begin = now_ns();
  for (size_t i = 0; i < 2000; i++)
    __asm__ volatile("add %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\t"
                     "add %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\tadd %1, %0"
                     : "+r"(sum)
                     : "r"(step));
  double added = now_ns();
  __asm__ volatile(".p2align 6\n1:\tdec %0\n\tjnz 1b" : "+r"(left));
  double cycle_ns = (added - begin) / 16000;
  return (struct clock){cycle_ns, (now_ns() - added) / 2000 / cycle_ns};
}

// A round counts if the core was alone and its cycles before and after were NEAR the requested
// ones; if there are no such rounds in MOST_NS, those within FAR count, scaled to that clock.
static const double NEAR = 1.03, FAR = 1.13, ALONE = 1.5, MOST_NS = 4e9;

static double fastest(kernel *kernel, long rounds, double clock_ns) {
  double near = 1e300, far = 1e300, any = 1e300;
  struct clock before = clock_now();
  long counted = 0;
  kernel();
  double end = now_ns() + MOST_NS;
  for (long tried = 0; counted < rounds && (tried < rounds || now_ns() < end); tried++) {
    double begin = now_ns();
    size_t operations = kernel();
    double each = (now_ns() - begin) / operations;
    struct clock behind = clock_now(), worst = before;
    if (behind.cycle_ns > worst.cycle_ns) worst.cycle_ns = behind.cycle_ns;
    if (behind.branch_cycles > worst.branch_cycles) worst.branch_cycles = behind.branch_cycles;
    before = behind;
    double slower = clock_ns > 0 ? worst.cycle_ns / clock_ns : 1;
    if (each < any) any = each;
    if (slower <= FAR && each / slower < far) far = each / slower;
    if (slower > NEAR || (clock_ns > 0 && worst.branch_cycles > ALONE)) continue;
    if (each < near) near = each;
    counted++;
  }
  return near < 1e300 ? near : far < 1e300 ? far : any;
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

int main(int argc, char **argv) {
  static struct named all[200];
  const struct named *lists[] = {chains, branches, arithmetic, memories, programs};
  size_t count = 0, halves;
  for (size_t list = 0; list < sizeof lists / sizeof *lists; list++)
    for (const struct named *one = lists[list]; one->name; one++) all[count++] = *one;
  qsort(all, count, sizeof *all, by_name);
  halves = count;
  for (const struct named *one = validation; one->name; one++) all[count++] = *one;
  if (argc < 3) {
    for (size_t i = 0; i < count; i++)
      printf("%s %s\n", i >= halves ? "validation" : i % 2 ? "held-out" : "tuned", all[i].name);
    return 0;
  }
  for (size_t i = 0; i < count; i++)
    if (!strcmp(all[i].name, argv[1])) {
      printf("%.4g\n", fastest(all[i].kernel, strtol(argv[2], NULL, 10), argc > 3 ? atof(argv[3]) : 0));
      return 0;
    }
  fprintf(stderr, "expected a kernel's name, found `%s`\n", argv[1]);
  return 2;
}
