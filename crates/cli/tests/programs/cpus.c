/* Prints the cpus that a program may use and the one that it is on, before and after it binds itself;
   then a thread binds itself to the cpu on which its creator keeps running. Its time there is that of
   the machine: 20 ms, for which the host takes longer. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile int done, work;

static void tell(void) {
    cpu_set_t set;
    unsigned cpu, node;
    sched_getaffinity(0, sizeof set, &set);
    syscall(SYS_getcpu, &cpu, &node, 0);
    for (int at = 0; at < CPU_SETSIZE; at++)
        if (CPU_ISSET(at, &set)) printf("%d ", at);
    printf("on %u of node %u\n", cpu, node);
}

static void bind_to_3(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(3, &set);
    sched_setaffinity(gettid(), sizeof set, &set);
}

static void *joins(void *nothing) {
    struct timespec begin, end;
    bind_to_3();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (int at = 0; at < 5000000; at++) work = at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    long ns = (end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec;
    printf("%s\n", ns > 1000000 && ns < 40000000 ? "in time" : "not in time");
    done = 1;
    return nothing;
}

int main(void) {
    pthread_t thread;
    tell();
    bind_to_3();
    tell();
    pthread_create(&thread, NULL, joins, NULL);
    while (!done) sched_yield();
    pthread_join(thread, NULL);
    return 0;
}
