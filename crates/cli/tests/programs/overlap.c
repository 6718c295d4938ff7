/* Loads the lines of 1 MiB in four rounds: each by a pointer in the line before it, or by its number; in
   four chases with positions in registers or in an array. Or branches by a pattern or at random. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define LINES ((size_t)1 << 14)

static struct line {
  uint64_t next, filler[7];
} lines[LINES];
static uint8_t ways[LINES];

static int is(const char *one, const char *other) { return !strcmp(one, other); }

/* Branches of which half are taken. */
static uint64_t branches(int by_chance) {
  uint64_t sum = 0, word = 88172645463325252u;
  for (size_t at = 0; at < LINES; at++) {
    word ^= word << 13, word ^= word >> 7, word ^= word << 17;
    ways[at] = by_chance ? word >> 20 & 1 : at & 1;
  }
  for (size_t at = 0; at < 4 * LINES; at++) {
    if (ways[at % LINES]) {
      sum += 3;
      /* So that it stays a branch. */
      __asm__ volatile("" : "+r"(sum));
    } else {
      sum ^= at;
    }
  }
  return sum;
}

/* Each step of four chases loads one line of each. */
static uint64_t chases(int in_array) {
  volatile uint64_t places[4] = {0, LINES / 4, LINES / 2, LINES / 4 * 3};
  uint64_t a = places[0], b = places[1], c = places[2], d = places[3];
  for (size_t at = 0; at < LINES; at++)
    if (in_array) {
      for (size_t of = 0; of < 4; of++) places[of] = lines[places[of]].next;
    } else {
      a = lines[a].next, b = lines[b].next, c = lines[c].next, d = lines[d].next;
    }
  return a + b + c + d + places[0];
}

int main(int count, char **words) {
  const char *how = count > 1 ? words[1] : "";
  for (size_t at = 0; at < LINES; at++)
    lines[at].next = (at + 1) % LINES;
  uint64_t sum = 0, place = 0;
  if (is(how, "chance") || is(how, "pattern"))
    sum = branches(is(how, "chance"));
  else if (is(how, "array") || is(how, "registers"))
    sum = chases(is(how, "array"));
  else
    for (size_t at = 0; at < 4 * LINES; at++)
      if (is(how, "chase"))
        place = lines[place].next;
      else
        sum += lines[at % LINES].next;
  printf("%lu\n", (unsigned long)(sum + place));
  return 0;
}
