/* Prints libnuma's view of the machine and its effect on pages, without its header. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

int numa_available(void);
int numa_max_node(void);
int numa_num_configured_cpus(void);
int numa_distance(int, int);
int numa_node_of_cpu(int);
int numa_run_on_node(int);
void *numa_alloc_onnode(size_t, int);
void *numa_alloc_interleaved(size_t);
long mbind(void *, unsigned long, int, const unsigned long *, unsigned long, unsigned);
long get_mempolicy(int *, unsigned long *, unsigned long, void *, unsigned);
long move_pages(int, unsigned long, void **, const int *, int *, int);
long migrate_pages(int, unsigned long, const unsigned long *, const unsigned long *);

#define BYTES (1 << 20)

static void tell(const char *what, char *block) {
    void *pages[3] = {block, block + 4096, (void *)4096};
    int status[3];
    move_pages(0, 3, pages, NULL, status, 0);
    printf("%s: %d %d %d\n", what, status[0], status[1], status[2]);
}

/* The kernel places private memory when it is written, not when it is read. */
static void places_when_written(void) {
    volatile char *zeros = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    volatile char *shared = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    numa_run_on_node(0);
    int sum = zeros[0] + zeros[4096] + shared[0];
    tell("read", (char *)zeros);
    tell("shared", (char *)shared);
    numa_run_on_node(1);
    zeros[0] = sum + 1;
    tell("written", (char *)zeros);
    int at_once = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;
    tell("populated", mmap(0, BYTES, PROT_READ | PROT_WRITE, at_once, -1, 0));
    unsigned long mask = 4;
    if (mbind((char *)zeros, BYTES, 2, &mask, 64, 0))
        printf("bound to node 2: %s\n", strerror(errno));
    mask = 1;
    if (mbind((char *)zeros, BYTES, 2, &mask, 64, 1))
        printf("strictly to node 0: %s\n", strerror(errno));
}

int main(void) {
    if (numa_available() < 0) {
        puts("no nodes");
        return 1;
    }
    printf("nodes to %d, cpus %d, distance %d\n", numa_max_node(), numa_num_configured_cpus(),
           numa_distance(0, 1));
    char *block = memset(numa_alloc_onnode(BYTES, 1), 1, BYTES);
    tell("on node 1", block);
    void *pages[2] = {block, block + 4096};
    int to[2] = {0, 9}, status[2] = {-1, -1}, node;
    long done = move_pages(0, 2, pages, to, status, 2);
    printf("moved: %ld %s, %d\n", done, done ? strerror(errno) : "", status[0]);
    tell("then", block);
    unsigned long one = 2, zero = 1;
    migrate_pages(0, 64, &one, &zero);
    tell("migrated", block);
    block = memset(numa_alloc_interleaved(BYTES), 1, BYTES);
    get_mempolicy(&node, NULL, 0, block, 3);
    int other;
    get_mempolicy(&other, NULL, 0, block + 4096, 3);
    printf("in turn: %d\n", node + other);
    numa_run_on_node(1);
    printf("runs on node %d\n", numa_node_of_cpu(sched_getcpu()));
    places_when_written();
    return 0;
}
