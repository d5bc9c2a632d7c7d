// SPDX-License-Identifier: MIT
// libs: -pthread
// end: detached
// missing: 32-bit
/* Threads wait with every signal blocked, in calls that have a mask of their own and in ppoll without one, when another thread's system call of
 * 32-bit programs has the program let go.  A SIGTRAP that is sent to one of them stays blocked, before and after. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static int ends[2];
static volatile int traps, users;
static sigset_t all, all_but_user;
static pthread_barrier_t ready;

static void on_signal(int signo)
{
    if (signo == SIGTRAP)
        traps++;
    else
        users++;
}

static void on_fault(int signo, siginfo_t *info, void *raw) /* a kernel without such calls */
{
    (void)signo;
    (void)info;
    ((ucontext_t *)raw)->uc_mcontext.gregs[REG_RIP] += 2;
    ((ucontext_t *)raw)->uc_mcontext.gregs[REG_RAX] = getpid();
}

static struct pollfd wanted(void)
{
    return (struct pollfd){ .fd = ends[0], .events = POLLIN };
}

static void in_ppoll(void)
{
    struct pollfd poll = wanted();

    CHECK(ppoll(&poll, 1, NULL, &all) == 1);
}

static void in_ppoll_without(void)
{
    struct pollfd poll = wanted();

    CHECK(ppoll(&poll, 1, NULL, NULL) == 1);
}

static void in_pselect(void)
{
    fd_set set;

    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    CHECK(pselect(ends[0] + 1, &set, NULL, NULL, NULL, &all) == 1);
}

static void in_epoll(void)
{
    struct epoll_event event = { .events = EPOLLIN };
    int epoll = epoll_create1(0);

    CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) == 0);
    CHECK(epoll_pwait(epoll, &event, 1, -1, &all) == 1);
    CHECK(close(epoll) == 0);
}

static void in_aio(void)
{
    aio_context_t context = 0;
    struct iocb poll = { .aio_lio_opcode = IOCB_CMD_POLL, .aio_fildes = (uint32_t)ends[0], .aio_buf = POLLIN };
    struct iocb *polls = &poll;
    struct io_event event;
    struct {
        const sigset_t *mask;
        size_t bytes;
    } mask = { &all, 8 };

    if (syscall(SYS_io_setup, 1, &context) != 0 ||
        syscall(SYS_io_submit, context, 1, &polls) != 1) {
        in_ppoll();
        return;
    }
    CHECK(syscall(SYS_io_pgetevents, context, 1, 1, &event, NULL, &mask) == 1);
    CHECK(syscall(SYS_io_destroy, context) == 0);
}

static void in_sigsuspend(void)
{
    CHECK(sigsuspend(&all_but_user) == -1 && errno == EINTR);
}

/* Those that begin with nothing blocked have it only during the call. */
static void (*const calls[])(void) = { in_ppoll, in_ppoll_without, in_pselect, in_epoll, in_aio, in_sigsuspend };
enum { KINDS = sizeof(calls) / sizeof(calls[0]), THREADS = 2 * KINDS };
static pthread_t threads[THREADS];

static void *wait_for_end(void *raw)
{
    uintptr_t number = (uintptr_t)raw;
    sigset_t pending;

    if (number >= KINDS || calls[number] == in_ppoll_without || calls[number] == in_sigsuspend)
        CHECK(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
    pthread_barrier_wait(&ready);
    calls[number % KINDS]();
    CHECK(sigpending(&pending) == 0);
    return sigismember(&pending, SIGTRAP) ? raw : NULL;
}

static void wait_until_all_wait(void)
{
    struct timespec moment = { .tv_nsec = 20000000 };

    pthread_barrier_wait(&ready);
    nanosleep(&moment, NULL);
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
    long result = 20; /* getpid */
    int pending = 0;

    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    signal(SIGTRAP, on_signal);
    signal(SIGUSR1, on_signal);
    sigfillset(&all);
    all_but_user = all;
    sigdelset(&all_but_user, SIGUSR1);
    CHECK(pipe(ends) == 0 && pthread_barrier_init(&ready, NULL, THREADS + 1) == 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, wait_for_end, (void *)i) == 0);
    wait_until_all_wait();
    CHECK(pthread_kill(threads[KINDS], SIGTRAP) == 0);
    puts("before");
    __asm__ volatile("int $0x80" : "+a"(result) : : "r8", "r9", "r10", "r11", "memory");
    CHECK(result == getpid());
    puts("after");
    CHECK(write(ends[1], "x", 1) == 1);
    for (uintptr_t i = 0; i < THREADS; i++) {
        void *value;

        if (calls[i % KINDS] == in_sigsuspend)
            CHECK(pthread_kill(threads[i], SIGUSR1) == 0);
        CHECK(pthread_join(threads[i], &value) == 0);
        pending += value != NULL;
    }
    printf("%d pending, %d traps, %d others\n", pending, traps, users);
    return 0;
}
