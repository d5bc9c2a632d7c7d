// SPDX-License-Identifier: MIT
/* launch.c - see launch.h
 *
 * LAUNCH-1  One thread starts all processes and lives as long as this process, because a child gets
 *     its parent-death signal when the thread that made it ends.  (not checked: tests that look for
 *     processes left behind do)
 * LAUNCH-2  The child shares this process' memory until execve: until then it only makes system
 *     calls, and its parent waits.  (not checked: a review of the child's functions does)
 *
 * Each process gets its own namespaces if the system allows them without privilege, which takes
 * less time than the rest of its start.  Otherwise it has none; the filter of system calls
 * (stub/filter.c) is the essential protection. */
#include "replay/launch.h"

#include "replay/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define APART            (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC)
#define FIRST_FD         10 /* lower numbers are used in the child */
#define STACK_BYTES      (64u << 10)
#define ALONE            __attribute__((no_sanitize("address", "undefined", "thread")))
#define SIGNAL_SET_BYTES 8

/* The thread sanitizer's clone() takes the child for one with memory of its own, and from then on looks at this thread as it
 * does at a forked one: its locks count no more. */
#ifdef __SANITIZE_THREAD__
int __clone(int (*body)(void *), void *stack, int flags, void *argument, ...);
#define clone __clone
#endif

struct child_start {
    int exe, fds[3];
    int flags;
    int error;
};

/* ---- the child ---- */

/* Mounts an empty root on /proc, and makes it the root. */
ALONE static bool empty_root(void)
{
    unsigned long flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;

    return !syscall(SYS_mount, "tmpfs", "/proc", "tmpfs", flags, "size=4k") &&
           !syscall(SYS_chroot, "/proc") && !syscall(SYS_chdir, "/");
}

ALONE static int child(void *argument)
{
    struct child_start *how = argument;
    static const char name[] = "tbd-replay";
    const char *argv[] = { name, NULL }, *envp[] = { NULL };
    uint64_t blocked = 1ull << (SIGINT - 1); /* Ctrl-C is for tbdq; the process ends with tbdq */

    for (int i = 0; i < 3; i++)
        syscall(SYS_close, i);
    if (syscall(SYS_dup3, how->fds[0], TBD_PLAN_FD, 0) < 0 ||
        syscall(SYS_dup3, how->fds[1], TBD_PLAN_STREAM_FD, 0) < 0 ||
        syscall(SYS_dup3, how->fds[2], TBD_PLAN_LIFE_FD, 0) < 0 || (how->flags && !empty_root())) {
        how->error = errno;
        syscall(SYS_exit, 127);
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, NULL, SIGNAL_SET_BYTES);
    syscall(SYS_execveat, how->exe, "", argv, envp, AT_EMPTY_PATH);
    how->error = errno;
    syscall(SYS_exit, 127);
    return 0;
}

/* ---- its parent ---- */

static void reap(pid_t pid)
{
    siginfo_t info;

    while (waitid(P_PID, (id_t)pid, &info, WEXITED) && errno == EINTR)
        ;
}

static int start_with(struct child_start *how, int flags, uint8_t *stack, pid_t *out)
{
    pid_t pid;

    how->flags = flags;
    how->error = 0;
    pid = clone(child, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD | flags, how);
    if (pid < 0)
        return errno;
    if (how->error)
        reap(pid);
    *out = pid;
    return how->error;
}

static int open_all(const struct tbd_launch *wanted, struct child_start *out)
{
    int from[3] = { wanted->plan_fd, wanted->stream_fd, wanted->life_fd };
    int exe = open(wanted->path, O_PATH | O_CLOEXEC);
    int error = exe < 0 ? errno : 0;

    out->exe = exe < 0 ? -1 : fcntl(exe, F_DUPFD_CLOEXEC, FIRST_FD);
    if (exe >= 0)
        close(exe);
    for (int i = 0; i < 3; i++)
        out->fds[i] = fcntl(from[i], F_DUPFD_CLOEXEC, FIRST_FD);
    if (!error && (out->exe < 0 || out->fds[0] < 0 || out->fds[1] < 0 || out->fds[2] < 0))
        error = EMFILE;
    return error;
}

static void close_all(const struct child_start *how)
{
    for (int i = 0; i < 3; i++)
        if (how->fds[i] >= 0)
            close(how->fds[i]);
    if (how->exe >= 0)
        close(how->exe);
}

static int launch(struct tbd_launch *wanted)
{
    uint8_t *stack = malloc(STACK_BYTES);
    struct child_start how;
    int error = open_all(wanted, &how);

    if (!stack)
        error = ENOMEM;
    if (!error) {
        wanted->is_apart = !start_with(&how, APART, stack, &wanted->pid);
        if (!wanted->is_apart)
            error = start_with(&how, 0, stack, &wanted->pid);
    }
    close_all(&how);
    free(stack);
    return error;
}

/* ---- the thread (LAUNCH-1) ---- */

static struct {
    pthread_mutex_t lock, turn; /* lock: for the fields below; turn: for callers */
    pthread_cond_t asked, answered;
    struct tbd_launch *request; /* NULL: no request, or it is done */
    int error;
    bool is_there;
} launcher = { .lock = PTHREAD_MUTEX_INITIALIZER,
               .turn = PTHREAD_MUTEX_INITIALIZER,
               .asked = PTHREAD_COND_INITIALIZER,
               .answered = PTHREAD_COND_INITIALIZER };

static void *serve(void *unused)
{
    pthread_mutex_lock(&launcher.lock);
    for (;;) {
        while (!launcher.request)
            pthread_cond_wait(&launcher.asked, &launcher.lock);
        launcher.error = launch(launcher.request);
        launcher.request = NULL;
        pthread_cond_signal(&launcher.answered);
    }
    return unused;
}

static int start_thread(void)
{
    sigset_t all, before;
    pthread_t thread;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* other threads handle signals */
    error = pthread_create(&thread, NULL, serve, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error)
        pthread_detach(thread);
    launcher.is_there = !error;
    return error;
}

int tbd_launch(struct tbd_launch *wanted)
{
    int error;

    pthread_mutex_lock(&launcher.turn);
    pthread_mutex_lock(&launcher.lock);
    error = launcher.is_there ? 0 : start_thread();
    if (!error) {
        launcher.request = wanted;
        pthread_cond_signal(&launcher.asked);
        while (launcher.request)
            pthread_cond_wait(&launcher.answered, &launcher.lock);
        error = launcher.error;
    }
    pthread_mutex_unlock(&launcher.lock);
    pthread_mutex_unlock(&launcher.turn);
    return error;
}
