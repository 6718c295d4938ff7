/* Four workers over one shared buffer: workers [shared|killed|exec FILE]. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 4, BYTES = 4 << 20, LINE = 64, ROUNDS = 3 };

static void work(const volatile char *buffer) {
    long sum = 0;
    for (int round = 0; round < ROUNDS; round++)
        for (long at = 0; at < BYTES; at += LINE) sum += buffer[at];
    (void)sum;
}

int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : "shared";
    pid_t children[WORKERS];
    int ready[2];
    char *buffer =
        mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (buffer == MAP_FAILED || pipe(ready)) return 2;
    memset(buffer, 1, BYTES);
    for (int at = 0; at < WORKERS; at++) {
        children[at] = fork();
        if (children[at] == 0) {
            if (!strcmp(how, "exec")) {
                execv(words[2], words + 2);
                _exit(9);
            }
            work(buffer);
            if (!strcmp(how, "killed")) {
                if (write(ready[1], "x", 1) != 1) _exit(8);
                pause();
            }
            _exit(0);
        }
    }
    for (int at = 0; at < WORKERS; at++) {
        char byte;
        if (!strcmp(how, "killed") && read(ready[0], &byte, 1) != 1) return 3;
    }
    if (!strcmp(how, "killed")) usleep(200000);
    for (int at = 0; at < WORKERS; at++) {
        if (!strcmp(how, "killed")) kill(children[at], SIGTERM);
        waitpid(children[at], NULL, 0);
    }
    return 0;
}
