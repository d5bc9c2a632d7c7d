// SPDX-License-Identifier: MIT
// flags: -D_GNU_SOURCE
// libs: pthread
// args: 5
/* Threads of all kinds that check themselves, for test_takeover.py: taken THREADS: prints "ready", works until there is a line on
 * standard input, then prints "done".  taken THREADS abort: then a function calls abort().
 * What a thread must not notice: registers, vector and x87 registers, flags, its signal mask and alternate stack, the rest of a sleep, a
 * lock that another has, a handler that runs at the time, restartable sequences. */
#include "check.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NAP_NS 3000000L

static atomic_bool is_over;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long one, other; /* equal with the lock */

static long now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

/* Integer, vector and x87 registers across a loop without calls. */
static uint64_t compute_once(void)
{
    uint64_t state = 88172645463325252u, all = 0;
    long double exact = 1.0L;
    double sum = 0;

    for (int i = 0; i < 200000; i++) {
        uint64_t value = check_random(&state);

        all = all * 31 + value;
        sum += (double)(value & 1023) * 0.5;
        exact = exact * 3.0L - 2.0L;
    }
    CHECK(exact == 1.0L);
    return all ^ (uint64_t)(sum * 2.0);
}

static uint64_t computed; /* before anything else */

static void compute(void)
{
    CHECK(compute_once() == computed);
}

static void sleep_shortly(void)
{
    const struct timespec nap = { 0, NAP_NS };
    long before = now_ns();

    CHECK(nanosleep(&nap, NULL) == 0 && now_ns() - before >= NAP_NS);
    before = now_ns();
    CHECK(poll(NULL, 0, 3) == 0 && now_ns() - before >= NAP_NS);
}

static void take_lock(void)
{
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&lock);
        CHECK(one == other);
        one++;
        if (i % 100 == 0)
            sched_yield();
        other++;
        pthread_mutex_unlock(&lock);
        free(malloc((size_t)i));
        CHECK(sched_getcpu() >= 0);
    }
}

/* Each byte that is sent comes back. */
static void talk(void)
{
    char out[64], in[64];
    int ends[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    for (int i = 0; i < 200; i++) {
        memset(out, i, sizeof(out));
        CHECK(write(ends[0], out, sizeof(out)) == sizeof(out));
        CHECK(read(ends[1], in, sizeof(in)) == sizeof(in) && memcmp(in, out, sizeof(in)) == 0);
    }
    close(ends[0]);
    close(ends[1]);
}

static _Thread_local volatile sig_atomic_t handled;
static _Thread_local char *own_stack;
#define STACK_BYTES (64u << 10)

static void on_signal(int signo, siginfo_t *info, void *context)
{
    char here;

    (void)context;
    CHECK(&here > own_stack && &here < own_stack + STACK_BYTES);
    CHECK(info->si_signo == signo && info->si_code == SI_TKILL);
    handled++;
}

/* To itself, on a stack of its own; another one stays blocked. */
static void be_signalled(void)
{
    sigset_t mask;
    stack_t stack;

    for (int i = 0; i < 100; i++) {
        handled = 0;
        CHECK(pthread_kill(pthread_self(), SIGUSR1) == 0 && handled == 1);
        CHECK(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0 && sigismember(&mask, SIGUSR2) == 1 &&
              sigismember(&mask, SIGUSR1) == 0);
        CHECK(sigaltstack(NULL, &stack) == 0 && stack.ss_sp == own_stack && stack.ss_flags == 0);
    }
}

static void (*const kinds[])(void) = { compute, sleep_shortly, take_lock, talk, be_signalled };

static void *work(void *kind)
{
    sigset_t blocked;
    stack_t stack = { .ss_size = STACK_BYTES };

    own_stack = malloc(STACK_BYTES);
    stack.ss_sp = own_stack;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    CHECK(own_stack && sigaltstack(&stack, NULL) == 0 && pthread_sigmask(SIG_BLOCK, &blocked, NULL) == 0);
    while (!is_over)
        kinds[(uintptr_t)kind % (sizeof(kinds) / sizeof(kinds[0]))]();
    return NULL;
}

__attribute__((noinline, noclone)) static void die(void)
{
    abort();
}

int main(int argc, char **argv)
{
    struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    uintptr_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    pthread_t *threads = calloc(count, sizeof(*threads));
    char byte;

    computed = compute_once();
    sigaction(SIGUSR1, &action, NULL);
    for (uintptr_t i = 0; i < count; i++)
        CHECK(threads && pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    printf("ready\n");
    fflush(stdout);
    CHECK(read(0, &byte, 1) >= 0);
    if (argc > 2)
        die();
    is_over = true;
    for (uintptr_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    CHECK(one == other);
    printf("done\n");
    return 0;
}
