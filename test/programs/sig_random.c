// SPDX-License-Identifier: MIT
/* A random walk over signals of every number: blocked, ignored, handled with all flags, sent in every way, pending, waited
 * for, read from a signalfd, let in by calls with masks, raised in handlers.  One thread, so that every step has one
 * outcome; what happened is printed as numbers. */
// args: 1 2 3
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { STEPS = 2500, DEEP = 4, LAST = 64, STACK = 1 << 18 };

static uint64_t state, hash;
static int depth, budget, epoll;
static char *stack;
static const struct timespec none = { 0, 0 };

static void note(uint64_t value)
{
    hash = (hash ^ value) * 0x100000001b3u;
    hash ^= hash >> 29;
}

static uint64_t below(uint64_t n)
{
    return check_random(&state) % n;
}

/* The C library keeps 32 and 33 for itself. */
static int any_signal(void)
{
    int signo;

    do {
        signo = below(3) ? 1 + (int)below(LAST) : (int[]){ SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGUSR1, SIGCHLD, SIGRTMIN }[below(8)];
    } while (signo == SIGKILL || signo == SIGSTOP);
    return signo;
}

/* As the kernel has them: all 64. */
static uint64_t any_set(void)
{
    uint64_t set = check_random(&state);

    switch (below(4)) {
    case 0: return set;
    case 1: return set & check_random(&state) & check_random(&state);
    case 2: return set | check_random(&state) | check_random(&state);
    default: return 1ull << (any_signal() - 1);
    }
}

static long mask(int how, uint64_t set, uint64_t *old)
{
    return syscall(SYS_rt_sigprocmask, how, &set, old, 8);
}

static uint64_t pending(void)
{
    uint64_t set = 0;

    CHECK(syscall(SYS_rt_sigpending, &set, 8) == 0);
    return set;
}

static void note_info(const siginfo_t *info)
{
    note((uint64_t)(uint32_t)info->si_signo << 32 | (uint32_t)info->si_code);
    CHECK(info->si_code > 0 || info->si_pid == getpid());
    if (info->si_code == SI_QUEUE)
        note((uint64_t)(uint32_t)info->si_value.sival_int);
}

static void step(void);

static void on_signal(int signo, siginfo_t *info, void *context)
{
    uint64_t now;
    char here;

    (void)context;
    CHECK(info->si_signo == signo);
    note_info(info);
    mask(SIG_BLOCK, 0, &now);
    note(now);
    note((uint64_t)(&here >= stack && &here < stack + STACK));
    depth++;
    if (depth < DEEP)
        for (uint64_t n = below(3); n > 0; n--)
            step();
    note((uint64_t)depth);
    depth--;
}

struct kernel_action {
    void *handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
};

/* Sets the action through the C library (which knows the restorer), but for all 64 numbers. */
static void act(int signo)
{
    static struct kernel_action model;
    static const unsigned long flags[] = { SA_RESTART, SA_NODEFER, SA_RESETHAND, SA_ONSTACK };
    struct kernel_action set = { .handler = SIG_IGN }, old;
    int may_default = signo == SIGCHLD || signo == SIGURG || signo == SIGWINCH || signo == SIGCONT;

    if (!model.restorer) {
        struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

        CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
        CHECK(syscall(SYS_rt_sigaction, SIGUSR1, NULL, &model, 8) == 0);
    }
    if (below(5)) {
        set = model;
        set.mask = below(2) ? 0 : any_set();
        for (int i = 0; i < 4; i++)
            if (!below(3) && (flags[i] != (unsigned long)SA_RESETHAND || may_default))
                set.flags |= flags[i];
    } else if (may_default && below(2)) {
        set.handler = SIG_DFL;
    }
    CHECK(syscall(SYS_rt_sigaction, signo, &set, &old, 8) == 0);
    note(old.flags);
    note(old.mask);
    note(old.handler == model.handler ? 2 : (uint64_t)old.handler);
}

static void send(int signo)
{
    siginfo_t info = { .si_signo = signo, .si_code = SI_QUEUE };
    int is_synchronous = (0x4d8 | 1 << 30) >> (signo - 1) & 1;

    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_int = (int)below(1000);
    switch (is_synchronous ? below(2) : below(5)) {
    case 0: CHECK(syscall(SYS_tgkill, getpid(), gettid(), signo) == 0); break;
    case 1: CHECK(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), signo, &info) == 0); break;
    case 2: CHECK(kill(getpid(), signo) == 0); break;
    case 3: CHECK(syscall(SYS_tkill, gettid(), signo) == 0); break;
    case 4: CHECK(syscall(SYS_rt_sigqueueinfo, getpid(), signo, &info) == 0); break;
    }
}

static void wait_for(uint64_t set)
{
    siginfo_t info;
    long result = syscall(SYS_rt_sigtimedwait, &set, &info, &none, 8);

    note((uint64_t)result);
    if (result > 0)
        note_info(&info);
    else
        CHECK(errno == EAGAIN || errno == EINTR);
}

static void read_fd(uint64_t set)
{
    struct signalfd_siginfo info[3];
    int fd = (int)syscall(SYS_signalfd4, -1, &set, 8, SFD_NONBLOCK);
    struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
    ssize_t bytes;

    CHECK(fd >= 0);
    note((uint64_t)poll(&poll_fd, 1, 0));
    bytes = read(fd, info, sizeof(info));
    note((uint64_t)bytes);
    for (ssize_t i = 0; i < bytes / (ssize_t)sizeof(info[0]); i++)
        note((uint64_t)info[i].ssi_signo << 32 | (uint32_t)info[i].ssi_code);
    CHECK(close(fd) == 0);
}

static void call_with(uint64_t set)
{
    struct {
        const uint64_t *set;
        size_t bytes;
    } given = { &set, 8 };
    struct epoll_event event;
    struct timespec zero = none;
    long result;

    switch (below(4)) {
    case 0:
        if (!(pending() & ~set))
            return;
        /* what is ignored does not end the wait: a timer would have to */
        result = syscall(SYS_ppoll, NULL, 0, &zero, &set, 8);
        break;
    case 1: result = syscall(SYS_ppoll, NULL, 0, &zero, &set, 8); break;
    case 2: result = syscall(SYS_pselect6, 0, NULL, NULL, NULL, &zero, &given); break;
    default: result = syscall(SYS_epoll_pwait, epoll, &event, 1, 0, &set, 8);
    }
    note((uint64_t)result);
    if (result < 0)
        CHECK(errno == EINTR);
}

/* Only if a handler is going to run. */
static void suspend(uint64_t set)
{
    for (int signo = 1; signo <= LAST; signo++) {
        struct kernel_action now;

        if (!((pending() & ~set) >> (signo - 1) & 1))
            continue;
        CHECK(syscall(SYS_rt_sigaction, signo, NULL, &now, 8) == 0);
        if (now.handler == (void *)SIG_IGN || now.handler == (void *)SIG_DFL)
            continue;
        CHECK(syscall(SYS_rt_sigsuspend, &set, 8) == -1 && errno == EINTR);
        return;
    }
}

static void step(void)
{
    uint64_t old;

    if (budget <= 0)
        return;
    budget--;
    switch (below(11)) {
    case 0:
    case 1:
    case 2:
    case 3: send(any_signal()); break;
    case 4: CHECK(mask((int)below(3), any_set(), &old) == 0); note(old); break;
    case 5: CHECK(mask(SIG_UNBLOCK, ~0ull, &old) == 0); note(old); break;
    case 6: act(any_signal()); break;
    case 7: wait_for(any_set()); break;
    case 8: read_fd(any_set()); break;
    case 9: call_with(any_set()); break;
    case 10: suspend(any_set()); break;
    }
    note(pending());
}

static void walk(uint64_t seed)
{
    uint64_t all = ~0ull;

    state = seed * 0x9e3779b97f4a7c15u + 1;
    hash = 0xcbf29ce484222325u;
    for (int signo = 1; signo <= LAST; signo++)
        if (signo != SIGKILL && signo != SIGSTOP)
            act(signo);
    budget = STEPS;
    while (budget > 0) {
        step();
        if (budget % 250 == 0)
            printf("%d: %016lx\n", budget, (unsigned long)hash);
    }
    for (int signo = 1; signo <= LAST; signo++) /* forgets what is pending */
        if (signo != SIGKILL && signo != SIGSTOP) {
            struct kernel_action ignore = { .handler = SIG_IGN };

            CHECK(syscall(SYS_rt_sigaction, signo, &ignore, NULL, 8) == 0);
        }
    CHECK(mask(SIG_UNBLOCK, all, NULL) == 0 && pending() == 0);
    printf("%lu: %016lx\n", (unsigned long)seed, (unsigned long)hash);
}

int main(int argc, char **argv)
{
    stack_t set = { .ss_size = STACK };

    stack = set.ss_sp = malloc(STACK);
    CHECK(stack && sigaltstack(&set, NULL) == 0);
    epoll = epoll_create1(0);
    for (int i = 1; i < argc; i++)
        walk(strtoul(argv[i], NULL, 0));
    return 0;
}
