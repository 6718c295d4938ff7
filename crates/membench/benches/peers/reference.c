/*
 * The reference that membench is compared with, compiled by `cc -O3 -march=native` when the bench runs:
 * a pointer chase, STREAM's loops with ordinary and with non-temporal stores, and the two
 * usual ways to build a chase. Written for this comparison, from the papers' and manuals'
 * descriptions.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Follows `loads` pointers. */
void *reference_chase(void *start, uint64_t loads)
{
	void **at = start;
	for (uint64_t i = 0; i < loads; i++)
		at = *at;
	return at;
}

/* STREAM's kernels, with a sum and a fill. `n` counts doubles. */
double reference_read(const double *restrict a, size_t n)
{
	double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
#if defined(__AVX512F__)
	__m512d v0 = _mm512_setzero_pd(), v1 = v0, v2 = v0, v3 = v0;
	for (size_t i = 0; i < n; i += 32) {
		v0 = _mm512_add_pd(v0, _mm512_load_pd(a + i));
		v1 = _mm512_add_pd(v1, _mm512_load_pd(a + i + 8));
		v2 = _mm512_add_pd(v2, _mm512_load_pd(a + i + 16));
		v3 = _mm512_add_pd(v3, _mm512_load_pd(a + i + 24));
	}
	s0 = _mm512_reduce_add_pd(_mm512_add_pd(_mm512_add_pd(v0, v1), _mm512_add_pd(v2, v3)));
#else
	for (size_t i = 0; i < n; i += 8) {
		s0 += a[i]; s1 += a[i + 1]; s2 += a[i + 2]; s3 += a[i + 3];
		s4 += a[i + 4]; s5 += a[i + 5]; s6 += a[i + 6]; s7 += a[i + 7];
	}
#endif
	return s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7;
}

__attribute__((optimize("no-tree-loop-distribute-patterns")))
void reference_write(double *restrict a, size_t n)
{
	for (size_t i = 0; i < n; i++)
		a[i] = 3.0;
}

__attribute__((optimize("no-tree-loop-distribute-patterns")))
void reference_copy(double *restrict a, const double *restrict b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		a[i] = b[i];
}

void reference_triad(double *restrict a, const double *restrict b, const double *restrict c,
		     size_t n)
{
	for (size_t i = 0; i < n; i++)
		a[i] = b[i] + 3.0 * c[i];
}

#if defined(__x86_64__)
void reference_nt_write(double *restrict a, size_t n)
{
#if defined(__AVX512F__)
	__m512d v = _mm512_set1_pd(3.0);
	for (size_t i = 0; i < n; i += 8)
		_mm512_stream_pd(a + i, v);
#else
	__m128d v = _mm_set1_pd(3.0);
	for (size_t i = 0; i < n; i += 2)
		_mm_stream_pd(a + i, v);
#endif
	_mm_sfence();
}

void reference_nt_copy(double *restrict a, const double *restrict b, size_t n)
{
#if defined(__AVX512F__)
	for (size_t i = 0; i < n; i += 8)
		_mm512_stream_pd(a + i, _mm512_load_pd(b + i));
#else
	for (size_t i = 0; i < n; i += 2)
		_mm_stream_pd(a + i, _mm_load_pd(b + i));
#endif
	_mm_sfence();
}
#else
void reference_nt_write(double *restrict a, size_t n) { reference_write(a, n); }
void reference_nt_copy(double *restrict a, const double *restrict b, size_t n)
{
	reference_copy(a, b, n);
}
#endif

static struct random_data random_words;
static char random_state[32];

static void random_start(void)
{
	memset(&random_words, 0, sizeof random_words);
	initstate_r(1, random_state, sizeof random_state, &random_words);
}

static size_t random_upto(size_t limit)
{
	int32_t high, low;
	random_r(&random_words, &high);
	random_r(&random_words, &low);
	return (((uint64_t)high << 31) ^ (uint64_t)low) % (limit + 1);
}

/* Knuth's inside-out shuffle of `count` numbers from `base` on. */
static void shuffled(size_t *numbers, size_t count, size_t base)
{
	for (size_t i = 0; i < count; i++) {
		size_t at = random_upto(i);
		numbers[i] = numbers[at];
		numbers[at] = base + i;
	}
}

/*
 * The method of multichase: shuffle the groups of pages that a TLB holds, shuffle the lines of
 * each group, invert the whole, then link every line to the one after it in the shuffled
 * order. Returns 0 if the two tables cannot be allocated.
 */
int reference_build_groups(char *memory, size_t lines, size_t line_bytes, size_t group_lines)
{
	size_t groups = lines / group_lines;
	size_t *group_order = malloc(groups * sizeof *group_order);
	size_t *order = malloc(lines * sizeof *order);
	size_t *position = malloc(lines * sizeof *position);
	int ok = group_order && order && position;
	if (ok) {
		random_start();
		shuffled(group_order, groups, 0);
		for (size_t g = 0; g < groups; g++)
			shuffled(order + g * group_lines, group_lines,
				 group_order[g] * group_lines);
		for (size_t i = 0; i < lines; i++)
			position[order[i]] = i;
		for (size_t i = 0; i < lines; i++) {
			size_t next = position[i] + 1 == lines ? 0 : position[i] + 1;
			*(void **)(memory + i * line_bytes) = memory + order[next] * line_bytes;
		}
	}
	free(group_order);
	free(order);
	free(position);
	return ok;
}

/*
 * Sattolo's method: shuffle an array of line numbers so that it is one cycle, with an inline
 * generator, then link every line to the one given by the array.
 */
int reference_build_sattolo(char *memory, size_t lines, size_t line_bytes)
{
	uint32_t *next = malloc(lines * sizeof *next);
	uint64_t state = 88172645463325252u;
	if (!next)
		return 0;
	for (size_t i = 0; i < lines; i++)
		next[i] = (uint32_t)i;
	for (size_t i = lines - 1; i > 0; i--) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		size_t at = (size_t)(((unsigned __int128)state * i) >> 64);
		uint32_t swapped = next[i];
		next[i] = next[at];
		next[at] = swapped;
	}
	for (size_t i = 0; i < lines; i++)
		*(void **)(memory + i * line_bytes) = memory + (size_t)next[i] * line_bytes;
	free(next);
	return 1;
}
