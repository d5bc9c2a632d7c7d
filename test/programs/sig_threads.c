// SPDX-License-Identifier: MIT
// libs: pthread
/* Signals of every number, each to one of several threads: to one that computes, one that reads, one that waits for a
 * lock, one that waits for signals; and to the process, where one thread lets them in.  Real-time signals come in the
 * order in which they were sent, with their values. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { KINDS = 4, LAST = 64, VALUES = 30 };
enum { COMPUTES, READS, LOCKS, WAITS };

static struct {
    pthread_t thread;
    pid_t tid;
    volatile int count, last, code, wrong;
    volatile int values[VALUES];
    volatile int value_count;
    volatile uint64_t work;
} each[KINDS];

static volatile int stop, is_ready;
static int pipes[2];
static sem_t semaphore;

static int skips(int signo)
{
    return signo == SIGKILL || signo == SIGSTOP || signo == 32 || signo == 33;
}

static int who(void)
{
    pid_t tid = gettid();

    for (int i = 0; i < KINDS; i++)
        if (each[i].tid == tid)
            return i;
    return -1;
}

static void take(int me, int signo, const siginfo_t *info)
{
    if (me < 0 || info->si_signo != signo || info->si_pid != getpid()) {
        each[0].wrong++;
        return;
    }
    each[me].last = signo;
    each[me].code = info->si_code;
    if (info->si_code == SI_QUEUE && each[me].value_count < VALUES)
        each[me].values[each[me].value_count++] = info->si_value.sival_int;
    each[me].count++;
}

static void on_signal(int signo, siginfo_t *info, void *context)
{
    int saved = errno;

    (void)context;
    take(who(), signo, info);
    errno = saved;
}

static sigset_t everything(void)
{
    sigset_t set;

    sigfillset(&set);
    return set;
}

/* Some hundred cycles without a branch: what a replay and its comparison cost is counted in blocks, and this thread computes whenever
 * it is its turn. */
static uint64_t mix(uint64_t x)
{
#define ROUND (x ^= x << 13, x ^= x >> 7, x ^= x << 17)
    ROUND, ROUND, ROUND, ROUND, ROUND, ROUND, ROUND, ROUND;
    ROUND, ROUND, ROUND, ROUND, ROUND, ROUND, ROUND, ROUND;
    ROUND, ROUND, ROUND, ROUND, ROUND, ROUND, ROUND, ROUND;
    ROUND, ROUND, ROUND, ROUND, ROUND, ROUND, ROUND, ROUND;
#undef ROUND
    return x;
}

static void wait_for_signals(int me)
{
    sigset_t set = everything();

    while (!stop) {
        struct timespec little = { 0, 50000000 };
        siginfo_t info;
        int signo = sigtimedwait(&set, &info, &little);

        if (signo > 0)
            take(me, signo, &info);
        else
            CHECK(errno == EAGAIN || errno == EINTR);
    }
}

static void *live(void *argument)
{
    int me = (int)(intptr_t)argument;
    sigset_t set = everything();
    char c;

    each[me].tid = gettid();
    if (me != WAITS)
        CHECK(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
    is_ready++;
    switch (me) {
    case COMPUTES:
        while (!stop)
            each[me].work = mix(each[me].work + 1);
        break;
    case READS:
        while (read(pipes[0], &c, 1) != 1)
            CHECK(errno == EINTR);
        break;
    case LOCKS:
        while (sem_wait(&semaphore) != 0)
            CHECK(errno == EINTR);
        break;
    default: wait_for_signals(me);
    }
    return NULL;
}

static void await(int me, int count)
{
    while (each[me].count < count)
        sched_yield();
    CHECK(each[me].count == count);
}

static void to_each(void)
{
    for (int signo = 1; signo <= LAST; signo++)
        for (int i = 0; i < KINDS; i++) {
            int before = each[i].count;

            if (skips(signo))
                continue;
            if (signo % 2)
                CHECK(pthread_kill(each[i].thread, signo) == 0);
            else
                CHECK(pthread_sigqueue(each[i].thread, signo, (union sigval){ .sival_int = signo }) == 0);
            await(i, before + 1);
            CHECK(each[i].last == signo);
            each[i].value_count = 0;
        }
    puts("each");
}

/* The main thread blocks all, as the one that waits does; one of the others is sent a lot. */
static void in_order(void)
{
    for (int i = 0; i < KINDS; i++) {
        int before = each[i].count;

        each[i].value_count = 0;
        for (int n = 0; n < VALUES; n++)
            CHECK(pthread_sigqueue(each[i].thread, SIGRTMIN + 3, (union sigval){ .sival_int = n * n }) == 0);
        await(i, before + VALUES);
        for (int n = 0; n < VALUES; n++)
            CHECK(each[i].values[n] == n * n);
    }
    puts("in order");
}

static int sum(void)
{
    int all = 0;

    for (int i = 0; i < KINDS; i++)
        all += each[i].count;
    return all;
}

static void to_all(void)
{
    for (int signo = 1; signo <= LAST; signo++) {
        int before = sum();

        if (skips(signo))
            continue;
        CHECK(kill(getpid(), signo) == 0);
        while (sum() < before + 1)
            sched_yield();
        CHECK(sum() == before + 1);
    }
    puts("all");
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
    sigset_t set = everything();

    CHECK(pipe(pipes) == 0 && sem_init(&semaphore, 0, 0) == 0);
    for (int signo = 1; signo <= LAST; signo++)
        if (!skips(signo))
            CHECK(sigaction(signo, &action, NULL) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    for (int i = 0; i < KINDS; i++) {
        CHECK(pthread_create(&each[i].thread, NULL, live, (void *)(intptr_t)i) == 0);
        while (is_ready <= i)
            sched_yield();
    }
    to_each();
    in_order();
    to_all();
    stop = 1;
    CHECK(write(pipes[1], "x", 1) == 1 && sem_post(&semaphore) == 0);
    for (int i = 0; i < KINDS; i++)
        CHECK(pthread_join(each[i].thread, NULL) == 0);
    printf("%d wrong\n", each[0].wrong);
    return 0;
}
