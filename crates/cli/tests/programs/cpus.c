/* The cpus that a program may use and the one that it is on, before and after it binds itself. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static void tell(void) {
    cpu_set_t set;
    unsigned cpu, node;
    sched_getaffinity(0, sizeof set, &set);
    syscall(SYS_getcpu, &cpu, &node, 0);
    for (int at = 0; at < CPU_SETSIZE; at++)
        if (CPU_ISSET(at, &set)) printf("%d ", at);
    printf("on %u of node %u\n", cpu, node);
}

int main(void) {
    cpu_set_t set;
    tell();
    CPU_ZERO(&set);
    CPU_SET(3, &set);
    sched_setaffinity(gettid(), sizeof set, &set);
    tell();
    return 0;
}
