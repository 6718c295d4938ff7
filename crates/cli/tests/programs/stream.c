/* STREAM's four loops over arrays that all threads touched first, by OpenMP. */
#include <stdio.h>
#include <stdlib.h>

#define NUMBERS ((size_t)1 << 17)
#define ROUNDS 3

int main(void) {
  double *a = malloc(NUMBERS * sizeof *a), *b = malloc(NUMBERS * sizeof *b);
  double *c = malloc(NUMBERS * sizeof *c);
#pragma omp parallel for
  for (size_t at = 0; at < NUMBERS; at++)
    a[at] = 1, b[at] = 2, c[at] = 0;
  for (int round = 0; round < ROUNDS; round++) {
#pragma omp parallel for
    for (size_t at = 0; at < NUMBERS; at++)
      c[at] = a[at];
#pragma omp parallel for
    for (size_t at = 0; at < NUMBERS; at++)
      b[at] = 3 * c[at];
#pragma omp parallel for
    for (size_t at = 0; at < NUMBERS; at++)
      c[at] = a[at] + b[at];
#pragma omp parallel for
    for (size_t at = 0; at < NUMBERS; at++)
      a[at] = b[at] + 3 * c[at];
  }
  printf("%g\n", a[NUMBERS - 1]);
  return 0;
}
