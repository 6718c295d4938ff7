/* Threads, a child forked next to them that has a child itself, and a signal that ends a wait. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t signals;

static void handle(int signal) {
    (void)signal;
    signals++;
}

static void *work(void *unused) {
    volatile long sum = 0;
    (void)unused;
    for (int at = 0; at < 300000; at++) sum += at;
    return NULL;
}

int main(void) {
    pthread_t threads[4], other;
    int status;
    struct sigaction action = {.sa_handler = handle};
    sigaction(SIGALRM, &action, NULL);
    for (int at = 0; at < 4; at++) pthread_create(&threads[at], NULL, work, NULL);
    pid_t child = fork();
    if (child == 0) {
        pthread_create(&other, NULL, work, NULL);
        pthread_join(other, NULL);
        _exit(7);
    }
    for (int at = 0; at < 4; at++) pthread_join(threads[at], NULL);
    waitpid(child, &status, 0);
    alarm(1);
    while (!signals) pause();
    printf("child %d, signals %d\n", WEXITSTATUS(status), (int)signals);
    return 3;
}
