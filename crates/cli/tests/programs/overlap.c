/* Loads lines of 1 MiB, four rounds: each by what the line before it says, or by its number. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define LINES ((size_t)1 << 14)

static struct line {
  uint64_t next, filler[7];
} lines[LINES];

int main(int count, char **words) {
  int chases = count > 1 && !strcmp(words[1], "chase");
  for (size_t at = 0; at < LINES; at++)
    lines[at].next = (at + 1) % LINES;
  uint64_t sum = 0, place = 0;
  for (size_t at = 0; at < 4 * LINES; at++)
    if (chases)
      place = lines[place].next;
    else
      sum += lines[at % LINES].next;
  printf("%lu\n", (unsigned long)(sum + place));
  return 0;
}
