// SPDX-License-Identifier: MIT
/* A process that was not started under tbd, and waits in one system call: for test_attach.py.
 * attached KIND: prints "ready"; waits in that call for 0.7 s, or until its other side acts, and checks that the call has ended as it
 * should, again and again until there is a line on standard input; then prints "KIND done".  Kinds spin, seccomp and traced: computes, has
 * a filter, has a debugger. */
#include "check.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WAIT_NS 700000000L

static const struct timespec wait_time = { 0, WAIT_NS };

static long now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

static void in_sleep(void)
{
    CHECK(nanosleep(&wait_time, NULL) == 0);
}

static void in_poll(void)
{
    CHECK(poll(NULL, 0, WAIT_NS / 1000000) == 0);
}

static void in_epoll(void)
{
    struct epoll_event event;

    int set = epoll_create1(0);

    CHECK(epoll_wait(set, &event, 1, WAIT_NS / 1000000) == 0);
    close(set);
}

static void in_futex(void)
{
    static int word;

    CHECK(syscall(SYS_futex, &word, FUTEX_WAIT, 0, &wait_time, NULL, 0) == -1 && errno == ETIMEDOUT);
}

/* All signals stay blocked. */
static void in_sigwait(void)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    CHECK(sigtimedwait(&all, NULL, &wait_time) == -1 && errno == EAGAIN);
}

static void in_semop(void)
{
    int set = semget(IPC_PRIVATE, 1, 0600);
    struct sembuf take = { 0, -1, 0 };

    CHECK(set >= 0);
    CHECK(syscall(SYS_semtimedop, set, &take, 1, &wait_time) == -1 && errno == EAGAIN);
    semctl(set, 0, IPC_RMID);
}

static void on_alarm(int signal)
{
    (void)signal;
}

static void in_suspend(void)
{
    struct sigaction action = { .sa_handler = on_alarm };
    struct itimerspec once = { .it_value = wait_time };
    sigset_t alarm, before;
    timer_t timer;

    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarm, &before);
    sigaction(SIGALRM, &action, NULL);
    CHECK(timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0 &&
          timer_settime(timer, 0, &once, NULL) == 0);
    CHECK(sigsuspend(&before) == -1 && errno == EINTR);
    CHECK(sigprocmask(SIG_SETMASK, &before, &alarm) == 0 && sigismember(&alarm, SIGALRM) == 1);
    timer_delete(timer);
}

static void in_read(void)
{
    char byte;
    int fds[2];

    CHECK(pipe(fds) == 0);
    if (fork() == 0) {
        nanosleep(&wait_time, NULL);
        _exit(write(fds[1], "x", 1) != 1);
    }
    CHECK(read(fds[0], &byte, 1) == 1 && byte == 'x');
    CHECK(wait(NULL) > 0);
    close(fds[0]);
    close(fds[1]);
}

static void spin(void)
{
    long end = now_ns() + WAIT_NS;

    while (now_ns() < end)
        ;
}

static void limit_calls(void)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog filter = { 1, &allow };

    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
          prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

/* The debugger is a child, which ends with this process' end of a pipe. */
static void be_debugged(void)
{
    int fds[2];
    char byte;

    CHECK(pipe(fds) == 0);
    if (fork() == 0) {
        close(fds[1]);
        ptrace(PTRACE_SEIZE, getppid(), NULL, NULL);
        _exit(read(fds[0], &byte, 1) != 0);
    }
    close(fds[0]);
}

static bool has_line(void)
{
    struct pollfd input = { .fd = 0, .events = POLLIN };

    return poll(&input, 1, 0) == 1;
}

static const struct kind {
    char name[12];
    void (*wait)(void);
} kinds[] = {
    { "sleep", in_sleep },     { "poll", in_poll },   { "epoll", in_epoll },     { "futex", in_futex },
    { "sigwait", in_sigwait }, { "semop", in_semop }, { "suspend", in_suspend }, { "read", in_read },
    { "spin", spin },          { "seccomp", in_sleep }, { "traced", in_sleep },
};

void attached_done(const char *name);

__attribute__((noinline, noclone)) void attached_done(const char *name)
{
    printf("%s done\n", name);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";

    if (strcmp(name, "seccomp") == 0)
        limit_calls();
    if (strcmp(name, "traced") == 0)
        be_debugged();
    printf("ready\n");
    fflush(stdout);
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        while (strcmp(kinds[i].name, name) == 0 && !has_line()) {
            long before = now_ns();

            kinds[i].wait();
            CHECK(now_ns() - before >= WAIT_NS);
        }
    attached_done(name);
    return 0;
}
