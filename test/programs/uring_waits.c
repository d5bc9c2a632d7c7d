// SPDX-License-Identifier: MIT
// libs: pthread
/* io_uring_enter waits with a signal mask of its own, given in both ways: what it lets through comes, with the masks that the kernel has for a
 * handler then and after it, and what it blocks comes after the call.  Where io_uring is refused, ppoll waits in its place.  With an argument
 * it waits with all signals blocked, for a second (0) or for ever (1). */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { GETEVENTS = 1, EXT_ARG = 8, SETUP = 425, ENTER = 426, TIMES = 20 };

static int ring;
static uint64_t in_handler, after_handler;
static volatile int seen[65];
static volatile pid_t waiting;

static uint64_t bit(int signo)
{
    return 1ull << (signo - 1);
}

static uint64_t mask_now(void)
{
    uint64_t mask;

    CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8) == 0);
    return mask;
}

static void note(int signo, siginfo_t *info, void *context)
{
    (void)info;
    in_handler = mask_now();
    memcpy(&after_handler, &((ucontext_t *)context)->uc_sigmask, sizeof(after_handler));
    seen[signo]++;
}

/* Is it in the call?  Signals come then, or before it: they are blocked. */
static void *send(void *unused)
{
    pid_t tid = waiting;
    const struct timespec moment = { 0, 2000000 };

    nanosleep(&moment, NULL);
    CHECK(syscall(SYS_tgkill, getpid(), tid, SIGUSR2) == 0);
    CHECK(syscall(SYS_tgkill, getpid(), tid, SIGUSR1) == 0);
    return unused;
}

static long wait_with(uint64_t mask, int how, struct timespec *most)
{
    struct {
        uint64_t mask;
        uint32_t bytes, pad;
        uint64_t time;
    } more = { (uint64_t)&mask, 8, 0, (uint64_t)most };

    if (ring < 0)
        return syscall(SYS_ppoll, NULL, 0, most, &mask, 8);
    return how ? syscall(ENTER, ring, 0, 1, GETEVENTS | EXT_ARG, &more, sizeof(more))
               : syscall(ENTER, ring, 0, 1, GETEVENTS, &mask, 8);
}

static void test(int how)
{
    uint64_t before = mask_now(), mask = ~bit(SIGUSR1);
    pthread_t thread;
    int one = seen[SIGUSR1], two = seen[SIGUSR2];

    CHECK(pthread_create(&thread, NULL, send, NULL) == 0);
    CHECK(wait_with(mask, how, NULL) == -1 && errno == EINTR);
    CHECK(seen[SIGUSR1] == one + 1 && seen[SIGUSR2] == two);
    CHECK(in_handler == ((mask | bit(SIGUSR1)) & ~bit(SIGKILL) & ~bit(SIGSTOP)));
    CHECK(after_handler == before && mask_now() == before);
    CHECK(pthread_join(thread, NULL) == 0);
    before = bit(SIGUSR2);
    CHECK(syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &before, NULL, 8) == 0);
    CHECK(seen[SIGUSR2] == two + 1);
    CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &before, NULL, 8) == 0);
}

static int wait_long(int for_ever)
{
    struct timespec second = { 1, 0 };
    long result;

    puts("waiting");
    fflush(stdout);
    result = wait_with(UINT64_MAX, !for_ever, for_ever ? NULL : &second);
    CHECK(ring < 0 ? result == 0 : result == -1 && errno == ETIME);
    puts("a second has passed");
    return 0;
}

int main(int argc, char **argv)
{
    struct sigaction action = { .sa_sigaction = note, .sa_flags = SA_SIGINFO };
    uint64_t blocked = bit(SIGUSR1) | bit(SIGUSR2);
    char parameters[120] = { 0 };

    waiting = getpid();
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && sigaction(SIGUSR2, &action, NULL) == 0);
    CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &blocked, NULL, 8) == 0);
    ring = (int)syscall(SETUP, 4, parameters);
    if (argc > 1)
        return wait_long(*argv[1] == '1');
    for (int i = 0; i < TIMES; i++)
        test(i % 2);
    puts("waited");
    return 0;
}
