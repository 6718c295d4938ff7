/* A preloaded library that reports the nodes of a program's pages when it ends, by move_pages(2). Writes
   a line for each mapping, `PAGES-ON-0 PAGES-ON-1` and its line of /proc/self/maps, to $PAGES.PID, after a
   wait in which a profiler that scans periodically has seen it. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096L
#define AT_ONCE 1024
#define LOOKED_AT_US 5000000

static void count(unsigned long start, unsigned long end, long on[2]) {
  while (start < end) {
    static void *pages[AT_ONCE];
    static int status[AT_ONCE];
    unsigned long asked = 0;
    for (; asked < AT_ONCE && start < end; start += PAGE)
      pages[asked++] = (void *)start;
    if (syscall(SYS_move_pages, 0, asked, pages, NULL, status, 0) != 0)
      return;
    for (unsigned long at = 0; at < asked; at++)
      if (status[at] == 0 || status[at] == 1)
        on[status[at]]++;
  }
}

static void tell(const char *file) {
  static char line[512];
  FILE *maps = fopen("/proc/self/maps", "r"), *out = fopen(file, "w");
  while (maps && out && fgets(line, sizeof line, maps)) {
    unsigned long start, end;
    long on[2] = {0, 0};
    if (sscanf(line, "%lx-%lx", &start, &end) != 2 || strstr(line, "[v"))
      continue;
    count(start, end, on);
    fprintf(out, "%ld %ld %s", on[0], on[1], line);
  }
  if (maps)
    fclose(maps);
  if (out)
    fclose(out);
}

static __attribute__((destructor)) void ends(void) {
  static char file[4096];
  if (!getenv("PAGES"))
    return;
  snprintf(file, sizeof file, "%s.%d", getenv("PAGES"), getpid());
  /* A first call touches all that the report needs, so that the report itself faults in no page. */
  tell("/dev/null");
  usleep(LOOKED_AT_US);
  tell(file);
}

/* A forked child ends this way. */
void _exit(int status) {
  ends();
  syscall(SYS_exit_group, status);
  __builtin_unreachable();
}
