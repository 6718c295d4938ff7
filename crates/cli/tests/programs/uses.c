/* A table that the first thread fills, on the node of its cpu, and a thread on another cpu that
   reads it and writes a separate block, for MILLISECONDS. Prints the nodes of both by move_pages(2).
   uses MILLISECONDS FIRST-CPU OTHER-CPU [fork|daemon|stay] */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096L
#define TABLE (2048 * PAGE)
#define OWN (512 * PAGE)

static volatile char *table, *own;
static long milliseconds;
static int other_cpu;

static void on(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        exit(9);
}

static volatile char *pages(long bytes) {
    char *found = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED)
        exit(8);
    madvise(found, bytes, MADV_NOHUGEPAGE);
    return found;
}

static __attribute__((noinline)) void fill(volatile char *block, long bytes) {
    for (long at = 0; at < bytes; at += PAGE)
        block[at] = 1; /* fill */
}

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void *use(void *unused) {
    on(other_cpu);
    own = pages(OWN);
    fill(own, OWN);
    long sum = 0;
    for (long end = now() + milliseconds; now() < end;) {
        for (long at = 0; at < TABLE; at += PAGE)
            sum += table[at];
        for (long at = 0; at < OWN; at += PAGE)
            own[at]++;
    }
    return (void *)sum;
}

static void tell(const char *name, volatile char *block, long bytes) {
    long count = bytes / PAGE, on_node[8] = {0};
    void *addresses[TABLE / PAGE];
    int nodes[TABLE / PAGE];
    for (long at = 0; at < count; at++) {
        (void)block[at * PAGE];
        addresses[at] = (void *)(block + at * PAGE);
    }
    syscall(SYS_move_pages, 0, count, addresses, NULL, nodes, 0);
    for (long at = 0; at < count; at++)
        if (nodes[at] >= 0 && nodes[at] < 8)
            on_node[nodes[at]]++;
    printf("%s %p %ld %ld\n", name, (void *)block, on_node[0], on_node[1]);
}

int main(int count, char **words) {
    const char *how = count > 4 ? words[4] : "";
    pthread_t thread;
    milliseconds = atol(words[1]);
    other_cpu = atoi(words[3]);
    on(atoi(words[2]));
    if (strcmp(how, "daemon") == 0 && fork() != 0)
        return 0;
    if (strcmp(how, "daemon") == 0)
        setsid();
    if (strcmp(how, "fork") == 0 && fork() != 0) {
        int status;
        wait(&status);
        return WEXITSTATUS(status);
    }
    table = pages(TABLE);
    fill(table, TABLE);
    pthread_create(&thread, NULL, use, NULL);
    pthread_join(thread, NULL);
    tell("table", table, TABLE);
    tell("own", own, OWN);
    fflush(stdout);
    return strcmp(how, "fails") == 0 ? 7 : 0;
}
