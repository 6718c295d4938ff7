/* A sum by threads of OpenMP. */
#include <omp.h>
#include <stdio.h>

int main(void) {
    long sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int at = 0; at < 200000; at++) sum += at % 7;
    printf("%d threads: %ld\n", omp_get_max_threads(), sum);
    return 0;
}
