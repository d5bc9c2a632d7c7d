// SPDX-License-Identifier: MIT
/* remote_thread.c - see remote_thread.h
 *
 *   seize -> interrupt -> stopped: registers and mask kept -> calls, one by one -> registers and mask as before -> detach
 *
 * orig_rax is -1 while the thread works for us, so that the kernel does not mend a system call that was interrupted; with the thread's
 * own registers it does, when the thread goes on: a sleep goes on for the rest of its time. */
#include "query/attach/remote_thread.h"

#include "query/attach/attach_check.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STOP_TRIES  5000
#define TRY_NS      1000000L
#define QUICK_TRIES 100 /* most stops come at once */
#define QUICK_NS    20000L
#define CODE_64     0x33u /* cs of 64-bit code */
#define MASK_BYTES  8
#define TRAP_BIT    (1ull << (SIGTRAP - 1))
#define EVENT_STOP  PTRACE_EVENT_STOP
#define VDSO_BYTES  16384u
#define NUMBER_NONE (-1)
#define MOST_STEPS                                                                                 \
    64 /* slow steps may go round for ever in a loop that waits for the clock to stay as it is */
#define SYSCALL_BYTES 2

/* ptrace(2) as the kernel has it. */
static long trace(long request, pid_t tid, uint64_t address, void *data)
{
    return syscall(SYS_ptrace, request, (long)tid, address, data);
}

/* ---- which thread ---- */

/* These end with EINTR after any stop (signal(7)), others go on by themselves. */
static bool is_ended_by_stop(long number)
{
    switch (number) {
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
    case SYS_rt_sigtimedwait:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_msgrcv:
    case SYS_msgsnd:
    case SYS_io_getevents:
    case SYS_io_pgetevents:
    case SYS_io_uring_enter: return true;
    default: return false;
    }
}

/* Lower is better; -1: no. */
static int rank_of(pid_t pid, const char *name)
{
    char path[96], text[64] = "";
    FILE *file;
    int rank;

    snprintf(path, sizeof(path), "/proc/%d/task/%.16s/syscall", (int)pid, name);
    file = fopen(path, "re");
    if (!file)
        return 3;
    if (!fgets(text, sizeof(text), file))
        text[0] = '\0';
    fclose(file);
    if (strncmp(text, "running", 7) == 0)
        return 0;
    rank = is_ended_by_stop(strtol(text, NULL, 10)) ? 2 : 1;
    return rank;
}

static pid_t best_thread(pid_t pid)
{
    struct dirent *entry;
    int best = 4;
    pid_t tid = pid;
    char path[64];
    DIR *tasks;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    tasks = opendir(path);
    while (tasks && (entry = readdir(tasks)) != NULL) {
        int rank = entry->d_name[0] == '.' ? 4 : rank_of(pid, entry->d_name);

        if (rank < best) {
            best = rank;
            tid = (pid_t)strtol(entry->d_name, NULL, 10);
        }
    }
    if (tasks)
        closedir(tasks);
    return tid;
}

/* ---- stops ---- */

/* False: the thread has ended, or does not stop; without a limit it is waited for. */
static bool wait_for_stop(const struct tbd_remote *remote, bool has_limit, int *out_status)
{
    for (int i = 0; i < STOP_TRIES || !has_limit; i += i < STOP_TRIES) {
        const struct timespec moment = { 0, i < QUICK_TRIES ? QUICK_NS : TRY_NS };
        pid_t got = waitpid(remote->tid, out_status, __WALL | WNOHANG);

        if (got == remote->tid)
            return WIFSTOPPED(*out_status);
        if (got < 0 && errno != EINTR)
            return false;
        nanosleep(&moment, NULL);
    }
    return false;
}

/* A signal that was about to be delivered goes on its way. */
static bool stop(const struct tbd_remote *remote, struct tbd_query_error *error)
{
    int status;

    while (wait_for_stop(remote, true, &status)) {
        if (status >> 16 == EVENT_STOP && WSTOPSIG(status) == SIGTRAP)
            return true;
        if (status >> 16 == EVENT_STOP)
            return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "process %d has just been stopped",
                                   (int)remote->pid);
        trace(PTRACE_CONT, remote->tid, 0, (void *)(intptr_t)WSTOPSIG(status));
    }
    return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "thread %d does not stop", (int)remote->tid);
}

/* The engine reads memory that may not be there. */
static bool is_fault(pid_t tid)
{
    siginfo_t info;

    return trace(PTRACE_GETSIGINFO, tid, 0, &info) == 0 && info.si_code > 0 &&
           (info.si_signo == SIGSEGV || info.si_signo == SIGBUS);
}

/* Runs on until the trap, however long it waits for a processor: if it were left half-way, it would die of the trap.  Faults are the engine's; other
 * signals that cannot be blocked are kept for later. */
static bool run(struct tbd_remote *remote, long how)
{
    int status, signo = 0;

    do {
        if (trace(how, remote->tid, 0, (void *)(intptr_t)signo) != 0 ||
            !wait_for_stop(remote, false, &status))
            return false;
        signo = 0;
        if (WSTOPSIG(status) == SIGTRAP || status >> 16 != 0)
            continue;
        if (is_fault(remote->tid))
            signo = WSTOPSIG(status);
        else
            remote->held = WSTOPSIG(status);
    } while (WSTOPSIG(status) != SIGTRAP || status >> 16 != 0);
    return true;
}

/* ---- borrowing ---- */

/* Has a signal come that ends the call anyway? */
static bool has_signal(pid_t pid, pid_t tid)
{
    struct tbd_attach_thread thread;

    tbd_attach_read_thread(pid, tid, &thread);
    return (thread.pending | thread.shared_pending) & ~thread.blocked;
}

bool tbd_remote_mend_call(pid_t pid, pid_t tid, struct user_regs_struct *regs)
{
    if ((long)regs->rax != -EINTR || !is_ended_by_stop((long)regs->orig_rax) ||
        has_signal(pid, tid))
        return false;
    regs->rax = regs->orig_rax;
    regs->rip -= SYSCALL_BYTES;
    regs->orig_rax = (unsigned long long)NUMBER_NONE;
    return true;
}

static bool find_syscall(struct tbd_remote *remote)
{
    static uint8_t code[VDSO_BYTES];
    struct tbd_attach_range vdso;
    ssize_t got;

    if (!tbd_attach_find_vdso(remote->pid, &vdso))
        return false;
    got = pread(remote->memory, code, sizeof(code), (off_t)vdso.start);
    for (ssize_t i = 0; i + 1 < got && (uint64_t)i + 1 < vdso.end - vdso.start; i++)
        if (code[i] == 0x0f && code[i + 1] == 0x05) {
            remote->syscall_at = vdso.start + (uint64_t)i;
            return true;
        }
    return false;
}

static bool take_state(struct tbd_remote *remote, struct tbd_query_error *error)
{
    uint64_t mask = ~TRAP_BIT;

    if (trace(PTRACE_GETREGS, remote->tid, 0, &remote->saved) != 0 ||
        trace(PTRACE_GETSIGMASK, remote->tid, MASK_BYTES, &remote->mask) != 0)
        return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "thread %d: %s", (int)remote->tid,
                               strerror(errno));
    if (remote->saved.cs != CODE_64)
        return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "thread %d runs 32-bit code",
                               (int)remote->tid);
    tbd_remote_mend_call(remote->pid, remote->tid, &remote->saved);
    if (trace(PTRACE_SETSIGMASK, remote->tid, MASK_BYTES, &mask) != 0)
        return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "thread %d: its mask: %s", (int)remote->tid,
                               strerror(errno));
    return true;
}

bool tbd_remote_borrow(struct tbd_remote *remote, pid_t pid, pid_t tid,
                       struct tbd_query_error *error)
{
    char path[64];

    *remote = (struct tbd_remote){ .pid = pid, .tid = tid ? tid : best_thread(pid), .memory = -1 };
    remote->waits_in = tbd_attach_waits_in(pid, remote->tid);
    if (trace(PTRACE_SEIZE, remote->tid, 0, NULL) != 0)
        return tbd_attach_refused(pid, errno, error);
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
    remote->memory = open(path, O_RDWR | O_CLOEXEC);
    if (remote->memory < 0 || !find_syscall(remote)) {
        tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "process %d: its memory cannot be accessed",
                        (int)pid);
    } else if (trace(PTRACE_INTERRUPT, remote->tid, 0, NULL) == 0 && stop(remote, error)) {
        if (take_state(remote, error))
            return true;
        trace(PTRACE_DETACH, remote->tid, 0, NULL);
    }
    if (remote->memory >= 0)
        close(remote->memory);
    return false;
}

size_t tbd_remote_read_vectors(pid_t tid, void *out)
{
    struct iovec state = { out, TBD_REMOTE_VECTOR_BYTES };

    return trace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &state) == 0 ? state.iov_len : 0;
}

bool tbd_remote_keep_vectors(struct tbd_remote *remote, struct tbd_query_error *error)
{
    remote->vectors = calloc(1, TBD_REMOTE_VECTOR_BYTES);
    if (remote->vectors)
        remote->vector_bytes = tbd_remote_read_vectors(remote->tid, remote->vectors);
    return remote->vector_bytes ||
           tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "thread %d: its vector registers: %s",
                           (int)remote->tid, strerror(errno));
}

static void give_back_vectors(struct tbd_remote *remote)
{
    struct iovec state = { remote->vectors, remote->vector_bytes };

    if (remote->vector_bytes)
        trace(PTRACE_SETREGSET, remote->tid, NT_X86_XSTATE, &state);
    free(remote->vectors);
}

void tbd_remote_let_go(struct tbd_remote *remote)
{
    give_back_vectors(remote);
    trace(PTRACE_SETSIGMASK, remote->tid, MASK_BYTES, &remote->mask);
    trace(PTRACE_SETREGS, remote->tid, 0, &remote->saved);
    trace(PTRACE_DETACH, remote->tid, 0, (void *)(intptr_t)remote->held);
    close(remote->memory);
}

/* ---- working ---- */

static struct user_regs_struct working(const struct tbd_remote *remote)
{
    struct user_regs_struct regs = remote->saved;

    regs.orig_rax = (unsigned long long)NUMBER_NONE;
    regs.eflags &= ~0x40500ull; /* TF, DF, AC */
    return regs;
}

long tbd_remote_call_system(struct tbd_remote *remote, long number, const uint64_t *arguments)
{
    struct user_regs_struct regs = working(remote);

    regs.rip = remote->syscall_at;
    regs.rax = (unsigned long long)number;
    regs.rdi = arguments[0];
    regs.rsi = arguments[1];
    regs.rdx = arguments[2];
    regs.r10 = arguments[3];
    regs.r8 = arguments[4];
    regs.r9 = arguments[5];
    if (trace(PTRACE_SETREGS, remote->tid, 0, &regs) != 0 || !run(remote, PTRACE_SINGLESTEP) ||
        trace(PTRACE_GETREGS, remote->tid, 0, &regs) != 0)
        return -ESRCH;
    return (long)regs.rax;
}

bool tbd_remote_step_out(struct tbd_remote *remote, uint64_t start, uint64_t end)
{
    for (int i = 0; i < MOST_STEPS; i++) {
        if (remote->saved.rip < start || remote->saved.rip >= end)
            return true;
        if (!run(remote, PTRACE_SINGLESTEP) ||
            trace(PTRACE_GETREGS, remote->tid, 0, &remote->saved) != 0)
            return false;
    }
    return false;
}

bool tbd_remote_call(struct tbd_remote *remote, uint64_t function, uint64_t argument,
                     uint64_t stack, uint64_t trap, uint64_t *out_result)
{
    struct user_regs_struct regs = working(remote);

    stack = (stack & ~15ull) - 8;
    regs.rip = function;
    regs.rdi = argument;
    regs.rsp = stack;
    if (!tbd_remote_write(remote, stack, &trap, sizeof(trap)) ||
        trace(PTRACE_SETREGS, remote->tid, 0, &regs) != 0 || !run(remote, PTRACE_CONT) ||
        trace(PTRACE_GETREGS, remote->tid, 0, &regs) != 0 || regs.rip != trap + 1)
        return false;
    *out_result = regs.rax;
    return true;
}

bool tbd_remote_write(struct tbd_remote *remote, uint64_t address, const void *bytes, size_t count)
{
    return pwrite(remote->memory, bytes, count, (off_t)address) == (ssize_t)count;
}

bool tbd_remote_read(const struct tbd_remote *remote, uint64_t address, void *out, size_t count)
{
    return pread(remote->memory, out, count, (off_t)address) == (ssize_t)count;
}
