/* Lets slurmd bind tasks to cpus that this machine does not have: cpu N becomes cpu
   N modulo their number. Loaded by LD_PRELOAD into slurmd and slurmstepd alone. */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

int sched_setaffinity(pid_t task, size_t size, const cpu_set_t *wanted) {
  long present = sysconf(_SC_NPROCESSORS_CONF);
  cpu_set_t folded;
  int any = 0;
  CPU_ZERO(&folded);
  for (size_t cpu = 0; cpu < size * 8; cpu++)
    if (CPU_ISSET_S(cpu, size, wanted)) {
      CPU_SET(cpu % present, &folded);
      any = 1;
    }
  if (!any) return -1;
  return syscall(SYS_sched_setaffinity, task, sizeof folded, &folded) < 0 ? -1 : 0;
}
