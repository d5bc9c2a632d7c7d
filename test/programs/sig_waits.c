// SPDX-License-Identifier: MIT
/* Waiting for signals in all ways: sigsuspend, sigwaitinfo, sigtimedwait, signalfd, ppoll, pselect, epoll_pwait;
 * calls that are interrupted; processes that are stopped and continued; default actions with core dumps. */
// options: children=no
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t seen, blocked_inside;

static void on_signal(int signo)
{
    sigset_t now;

    seen = signo;
    CHECK(sigprocmask(SIG_BLOCK, NULL, &now) == 0);
    blocked_inside = sigismember(&now, SIGUSR1) * 4 + sigismember(&now, SIGUSR2) * 2 + sigismember(&now, SIGALRM);
}

/* Again and again: one may come before the call that is to be interrupted. */
static void soon(void)
{
    struct itimerval timer = { .it_value = { .tv_usec = 2000 }, .it_interval = { .tv_usec = 5000 } };

    seen = 0;
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static void with_masks(void)
{
    sigset_t all, waiting, now;
    struct timespec second = { .tv_sec = 20 };
    struct epoll_event event;
    int epoll = epoll_create1(0);

    sigemptyset(&all);
    sigaddset(&all, SIGALRM);
    sigaddset(&all, SIGUSR1);
    sigemptyset(&waiting);
    sigaddset(&waiting, SIGUSR2);
    CHECK(sigprocmask(SIG_SETMASK, &all, NULL) == 0);
    for (int i = 0; i < 5; i++) {
        soon();
        CHECK(sigsuspend(&waiting) == -1 && errno == EINTR && seen == SIGALRM && blocked_inside == 3);
        soon();
        CHECK(ppoll(NULL, 0, &second, &waiting) == -1 && errno == EINTR && seen == SIGALRM && blocked_inside == 3);
        soon();
        CHECK(pselect(0, NULL, NULL, NULL, &second, &waiting) == -1 && errno == EINTR && seen == SIGALRM);
        soon();
        CHECK(epoll_pwait(epoll, &event, 1, 20000, &waiting) == -1 && errno == EINTR && seen == SIGALRM);
        CHECK(sigprocmask(SIG_BLOCK, NULL, &now) == 0 && sigismember(&now, SIGUSR1) && !sigismember(&now, SIGUSR2));
    }
    close(epoll);
    puts("masks");
}

static void in_order(void)
{
    struct signalfd_siginfo info;
    struct timespec little = { .tv_nsec = 1000000 };
    union sigval value;
    siginfo_t got;
    sigset_t set;
    int fd;

    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    sigaddset(&set, SIGRTMIN + 1);
    sigaddset(&set, SIGUSR1);
    CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    for (value.sival_int = 0; value.sival_int < 6; value.sival_int++)
        CHECK(sigqueue(getpid(), SIGRTMIN + 1 - value.sival_int % 2, value) == 0);
    for (int i = 0; i < 3; i++)
        CHECK(sigwaitinfo(&set, &got) == SIGRTMIN && got.si_value.sival_int == 2 * i + 1);
    fd = signalfd(-1, &set, SFD_CLOEXEC);
    CHECK(fd >= 0);
    for (int i = 0; i < 3; i++) {
        CHECK(read(fd, &info, sizeof(info)) == sizeof(info));
        CHECK(info.ssi_signo == (unsigned)SIGRTMIN + 1 && info.ssi_int == 2 * i);
    }
    CHECK(sigtimedwait(&set, &got, &little) == -1 && errno == EAGAIN);
    raise(SIGUSR1);
    CHECK(sigpending(&set) == 0 && sigismember(&set, SIGUSR1));
    CHECK(sigtimedwait(&set, &got, &little) == SIGUSR1 && got.si_pid == getpid());
    close(fd);
    puts("order");
}

static void interrupted(void)
{
    struct sigaction restart = { .sa_handler = on_signal, .sa_flags = SA_RESTART }, plain = { .sa_handler = on_signal };
    struct timespec nap = { .tv_sec = 20 }, left;
    struct itimerval never = { 0 };
    sigset_t none;
    int ends[2];
    pid_t child;
    char byte;

    sigemptyset(&none);
    CHECK(sigprocmask(SIG_SETMASK, &none, NULL) == 0 && pipe(ends) == 0);
    CHECK(sigaction(SIGALRM, &plain, NULL) == 0);
    soon();
    CHECK(read(ends[0], &byte, 1) == -1 && errno == EINTR && seen == SIGALRM);
    soon();
    CHECK(nanosleep(&nap, &left) == -1 && errno == EINTR && left.tv_sec >= 15);
    CHECK(sigaction(SIGALRM, &restart, NULL) == 0);
    soon();
    child = fork();
    if (child == 0) {
        usleep(50000);
        CHECK(write(ends[1], "x", 1) == 1);
        _exit(0);
    }
    CHECK(read(ends[0], &byte, 1) == 1 && byte == 'x' && seen == SIGALRM);
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0 && waitpid(child, NULL, 0) == child);
    puts("interrupted");
}

/* The other process stops this one, and lets it go on. */
static void stopped(void)
{
    pid_t self = getpid(), child;
    int status = 0;

    seen = 0;
    signal(SIGCONT, on_signal); /* before the fork: the child may have done all before this one goes on */
    child = fork();
    if (child == 0) {
        for (int i = 0; i < 5; i++) {
            CHECK(kill(self, SIGSTOP) == 0);
            usleep(3000);
            CHECK(kill(self, SIGCONT) == 0);
            usleep(1000);
        }
        CHECK(kill(getpid(), SIGSTOP) == 0);
        _exit(5);
    }
    CHECK(waitpid(child, &status, WUNTRACED) == child || errno == EINTR);
    while (!WIFSTOPPED(status) && waitpid(child, &status, WUNTRACED) != child)
        ;
    CHECK(WIFSTOPPED(status) && seen == SIGCONT && kill(child, SIGCONT) == 0);
    while (waitpid(child, &status, 0) != child)
        CHECK(errno == EINTR);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    puts("stopped and continued");
}

int main(void)
{
    signal(SIGALRM, on_signal);
    signal(SIGUSR2, on_signal);
    with_masks();
    in_order();
    interrupted();
    stopped();
    return 0;
}
