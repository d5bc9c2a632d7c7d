// SPDX-License-Identifier: MIT
/* held_threads.c - see held_threads.h */
#include "query/attach/held_threads.h"

#include "base/array.h"
#include "base/clock.h"
#include "query/attach/attach_check.h"
#include "query/attach/remote_thread.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MASK_BYTES    8
#define PASSES        1000
#define MOST_STEPS    64 /* as in remote_thread.c */
#define CODE_BEFORE   96u
#define TRAP_BIT      (1ull << (SIGTRAP - 1))
#define LET_GO_NS     200000L
#define LONGEST_NS    10000000000ull
#define MOMENT_NS     20000L
#define RUN_NS        200000L
#define EVENT_STOP    PTRACE_EVENT_STOP
#define SYSCALL_BYTES 2
#define NUMBER_NONE   (-1)
#define CODE_64       0x33u /* cs of 64-bit code */

/* What a call has in rax that the kernel makes again when the stop ends (include/linux/errno.h). */
enum { RESTARTSYS = 512, RESTARTNOINTR = 513, RESTARTNOHAND = 514, RESTART_BLOCK = 516 };

/* Linux 5.13 on: older headers lack it, and libraries name the struct in different ways. */
#define GET_RSEQ_CONFIGURATION 0x420f
struct kernel_rseq {
    uint64_t area;
    uint32_t bytes, signature, flags, pad;
};

/* ptrace(2) as the kernel has it. */
static long trace(long request, pid_t tid, uint64_t address, void *data)
{
    return syscall(SYS_ptrace, request, (long)tid, address, data);
}

/* ---- the list ---- */

static struct tbd_held_thread *find(const struct tbd_held *held, pid_t tid)
{
    for (size_t i = 0; i < held->count; i++)
        if (held->all[i].tid == tid)
            return &held->all[i];
    return NULL;
}

static bool add(struct tbd_held *held, pid_t tid)
{
    if (!tbd_array_grow(&held->all, held->count, &held->capacity, sizeof(*held->all)))
        return false;
    held->all[held->count++] = (struct tbd_held_thread){ .tid = tid };
    return true;
}

static void drop(struct tbd_held *held, struct tbd_held_thread *thread)
{
    *thread = held->all[--held->count];
}

void tbd_held_free(struct tbd_held *held)
{
    free(held->all);
    *held = (struct tbd_held){ 0 };
}

/* ---- stopping ---- */

/* A first thread that has ended stays, as what is left of it, until the last one has. */
static bool has_ended(pid_t pid, pid_t tid)
{
    struct tbd_attach_thread thread;

    tbd_attach_read_thread(pid, tid, &thread);
    return thread.state == 'Z' || thread.state == 'X';
}

static bool seize(struct tbd_held *held, pid_t tid, struct tbd_query_error *error)
{
    uint64_t waits_in = tbd_attach_waits_in(held->pid, tid);

    if (trace(PTRACE_SEIZE, tid, 0, NULL) != 0) {
        int number = errno;

        return has_ended(held->pid, tid) || tbd_attach_refused(held->pid, number, error);
    }
    if (!add(held, tid)) {
        trace(PTRACE_INTERRUPT, tid, 0, NULL);
        return tbd_query_wrong(error, TBD_NOMEM, 0, 0, "no memory");
    }
    held->all[held->count - 1].waits_in = waits_in;
    trace(PTRACE_INTERRUPT, tid, 0, NULL);
    return true;
}

/* Those that are not in the list yet. */
static bool seize_new(struct tbd_held *held, pid_t but, size_t *out_new,
                      struct tbd_query_error *error)
{
    struct dirent *entry;
    bool done = true;
    char path[64];
    DIR *tasks;

    *out_new = 0;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)held->pid);
    tasks = opendir(path);
    while (done && tasks && (entry = readdir(tasks)) != NULL) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        size_t before = held->count;

        if (tid <= 0 || tid == but || find(held, tid))
            continue;
        done = seize(held, tid, error);
        *out_new += held->count - before;
    }
    if (tasks)
        closedir(tasks);
    return done;
}

enum seen { STOPPED, GONE, RUNS, STOPPED_BY_SIGNAL };

static enum seen look(pid_t tid)
{
    int status;
    pid_t got = waitpid(tid, &status, __WALL | WNOHANG);

    if (got == 0 || (got < 0 && errno == EINTR))
        return RUNS;
    if (got < 0 || !WIFSTOPPED(status))
        return GONE;
    if (status >> 16 == EVENT_STOP)
        return WSTOPSIG(status) == SIGTRAP ? STOPPED : STOPPED_BY_SIGNAL;
    /* a signal that was about to be delivered goes on its way; the stop follows */
    trace(PTRACE_CONT, tid, 0, (void *)(intptr_t)(status >> 16 ? 0 : WSTOPSIG(status)));
    return RUNS;
}

static bool await_stops(struct tbd_held *held, uint64_t until_ns, struct tbd_query_error *error)
{
    const struct timespec moment = { 0, MOMENT_NS };
    size_t i = 0;

    while (i < held->count) {
        struct tbd_held_thread *thread = &held->all[i];
        enum seen seen = thread->is_stopped ? STOPPED : look(thread->tid);

        if (seen == STOPPED) {
            thread->is_stopped = true;
            i++;
        } else if (seen == GONE) {
            drop(held, thread);
        } else if (seen == STOPPED_BY_SIGNAL) {
            return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "process %d has just been stopped",
                                   (int)held->pid);
        } else if (tbd_clock_ns() > until_ns) {
            return tbd_query_wrong(
                error, TBD_BUSY, 0, 0,
                "thread %d does not stop: it waits in the kernel, perhaps for a child of vfork",
                (int)thread->tid);
        } else {
            nanosleep(&moment, NULL);
        }
    }
    return true;
}

/* ---- what they have ---- */

void tbd_held_read_rseq(pid_t tid, struct tbd_held_thread *out)
{
    struct kernel_rseq kernel = { 0 };

    if (trace(GET_RSEQ_CONFIGURATION, tid, sizeof(kernel), &kernel) < 0)
        return;
    out->rseq = kernel.area;
    out->rseq_bytes = kernel.bytes;
    out->rseq_signature = kernel.signature;
}

static bool read_state(struct tbd_held *held, struct tbd_held_thread *thread,
                       struct tbd_query_error *error)
{
    if (trace(PTRACE_GETREGS, thread->tid, 0, &thread->regs) != 0 ||
        trace(PTRACE_GETSIGMASK, thread->tid, MASK_BYTES, &thread->mask) != 0)
        return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "thread %d: %s", (int)thread->tid,
                               strerror(errno));
    thread->has_regs = true;
    if (thread->regs.cs != CODE_64)
        return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "thread %d runs 32-bit code",
                               (int)thread->tid);
    thread->is_mended = tbd_remote_mend_call(held->pid, thread->tid, &thread->regs);
    tbd_held_read_rseq(thread->tid, thread);
    return true;
}

/* A thread that runs may make another until it is stopped. */
static bool stop_all(struct tbd_held *held, pid_t but, uint64_t until_ns,
                     struct tbd_query_error *error)
{
    size_t more = 1;

    for (int pass = 0; more && pass < PASSES; pass++)
        if (!seize_new(held, but, &more, error) || !await_stops(held, until_ns, error))
            return false;
    if (more)
        return tbd_query_wrong(error, TBD_SYSTEM, 0, 0,
                               "process %d makes threads all the time: they cannot all be stopped",
                               (int)held->pid);
    for (size_t i = 0; i < held->count; i++)
        if (!read_state(held, &held->all[i], error))
            return false;
    return true;
}

bool tbd_held_stop(struct tbd_held *held, pid_t pid, pid_t but, uint64_t until_ns,
                   struct tbd_query_error *error)
{
    *held = (struct tbd_held){ .pid = pid };
    if (stop_all(held, but, until_ns, error))
        return true;
    if (!tbd_held_go_on(held) && error->status == TBD_BUSY)
        error->status = TBD_SYSTEM;
    return false;
}

/* ---- working ---- */

static bool begin_step(pid_t tid)
{
    return trace(PTRACE_SINGLESTEP, tid, 0, NULL) == 0;
}

/* Another stop may come first. */
static bool end_step(pid_t tid)
{
    int status;

    for (;;) {
        while (waitpid(tid, &status, __WALL) < 0)
            if (errno != EINTR)
                return false;
        if (!WIFSTOPPED(status))
            return false;
        if (!(status >> 16) && WSTOPSIG(status) == SIGTRAP)
            return true;
        if (!begin_step(tid))
            return false;
    }
}

static bool block_all(struct tbd_held_thread *thread)
{
    uint64_t all = ~TRAP_BIT; /* a step that meets a blocked SIGTRAP would reset its action */

    if (!thread->is_moved && trace(PTRACE_SETSIGMASK, thread->tid, MASK_BYTES, &all) != 0)
        return false;
    thread->is_moved = true;
    return true;
}

bool tbd_held_call_begin(struct tbd_held_thread *thread, uint64_t syscall_at, long number,
                         const uint64_t *arguments)
{
    struct user_regs_struct regs = thread->regs;

    regs.orig_rax = (unsigned long long)NUMBER_NONE;
    regs.eflags &= ~0x40500ull; /* TF, DF, AC */
    regs.rip = syscall_at;
    regs.rax = (unsigned long long)number;
    regs.rdi = arguments[0];
    regs.rsi = arguments[1];
    regs.rdx = arguments[2];
    regs.r10 = arguments[3];
    return block_all(thread) && trace(PTRACE_SETREGS, thread->tid, 0, &regs) == 0 &&
           begin_step(thread->tid);
}

long tbd_held_call_end(const struct tbd_held_thread *thread)
{
    struct user_regs_struct regs;

    if (!end_step(thread->tid) || trace(PTRACE_GETREGS, thread->tid, 0, &regs) != 0)
        return -ESRCH;
    return (long)regs.rax;
}

bool tbd_held_step_out(struct tbd_held_thread *thread, uint64_t start, uint64_t end,
                       uint64_t until_ns)
{
    for (int i = 0; i < MOST_STEPS && tbd_clock_ns() < until_ns; i++) {
        if (thread->regs.rip < start || thread->regs.rip >= end)
            return true;
        if (!block_all(thread) || !begin_step(thread->tid) || !end_step(thread->tid) ||
            trace(PTRACE_GETREGS, thread->tid, 0, &thread->regs) != 0)
            return false;
    }
    return false;
}

/* ---- going on ---- */

/* Its call may have ended with an EINTR that only the stop has made, though nobody has looked yet. */
static void mend_unread(pid_t pid, struct tbd_held_thread *thread)
{
    if (!thread->has_regs && trace(PTRACE_GETREGS, thread->tid, 0, &thread->regs) == 0)
        thread->is_mended = tbd_remote_mend_call(pid, thread->tid, &thread->regs);
}

static void let_go(pid_t pid, struct tbd_held_thread *thread)
{
    mend_unread(pid, thread);
    if (thread->is_moved)
        trace(PTRACE_SETSIGMASK, thread->tid, MASK_BYTES, &thread->mask);
    if (thread->is_mended || thread->is_moved)
        trace(PTRACE_SETREGS, thread->tid, 0, &thread->regs);
    trace(PTRACE_DETACH, thread->tid, 0, NULL);
}

/* Those that are stopped by now. */
static void let_stopped_go(struct tbd_held *held)
{
    for (size_t i = 0; i < held->count;) {
        struct tbd_held_thread *thread = &held->all[i];

        if (!thread->is_stopped && look(thread->tid) == RUNS) {
            i++;
            continue;
        }
        let_go(held->pid, thread);
        drop(held, thread);
    }
}

/* A seized thread can only be let go when it is stopped, and one that is busy needs a processor for that. */
bool tbd_held_go_on(struct tbd_held *held)
{
    const struct timespec moment = { 0, LET_GO_NS };
    uint64_t until_ns = tbd_clock_ns() + LONGEST_NS;
    bool done;

    let_stopped_go(held);
    while (held->count && tbd_clock_ns() < until_ns) {
        nanosleep(&moment, NULL);
        let_stopped_go(held);
    }
    done = !held->count;
    tbd_held_free(held);
    return done;
}

bool tbd_held_send(const struct tbd_held_thread *thread, const struct user_regs_struct *regs)
{
    uint64_t all = UINT64_MAX;

    return trace(PTRACE_SETSIGMASK, thread->tid, MASK_BYTES, &all) == 0 &&
           trace(PTRACE_SETREGS, thread->tid, 0, (void *)(uintptr_t)regs) == 0 &&
           trace(PTRACE_DETACH, thread->tid, 0, NULL) == 0;
}

bool tbd_held_copy(const struct tbd_held *held, struct tbd_held *out, struct tbd_query_error *error)
{
    *out = (struct tbd_held){ .pid = held->pid, .count = held->count, .capacity = held->count };
    out->all = calloc(held->count + 1, sizeof(*out->all));
    if (!out->all)
        return tbd_query_wrong(error, TBD_NOMEM, 0, 0, "no memory");
    memcpy(out->all, held->all, held->count * sizeof(*out->all));
    return true;
}

static bool is_resumed(const struct user_regs_struct *regs)
{
    return (long)regs->rax == -RESTART_BLOCK && regs->orig_rax == SYS_restart_syscall;
}

void tbd_held_recall(struct tbd_held *held, const struct tbd_held *before)
{
    for (size_t i = 0; i < held->count; i++) {
        struct user_regs_struct *now = &held->all[i].regs;
        const struct tbd_held_thread *was = find(before, held->all[i].tid);

        if (is_resumed(now) && was && (long)was->regs.rax == -RESTART_BLOCK &&
            was->regs.rip == now->rip && was->regs.rsp == now->rsp)
            now->orig_rax = was->regs.orig_rax;
    }
}

bool tbd_held_let_run(struct tbd_held *held, struct tbd_held *io_before,
                      struct tbd_query_error *error)
{
    const struct timespec moment = { 0, RUN_NS };
    struct tbd_held before = *io_before;
    bool done;

    tbd_held_recall(held, &before);
    done = tbd_held_copy(held, io_before, error);
    tbd_held_free(&before);
    tbd_held_go_on(held);
    nanosleep(&moment, NULL);
    return done;
}

#define CLOCKS 64u /* more than clock_nanosleep() has; no pointer is so small */

/* After an earlier stop the kernel has resumed the call by restart_syscall.  Which one it was is known by where the thread has waited in the
 * kernel, since it can only have been in that call; else only the code before the instruction may say it: mov $number, %eax.  These four are
 * resumed so.  0: not known. */
static uint64_t find_resumed(int memory, uint64_t waits_in, const struct user_regs_struct *regs)
{
    uint64_t rip = regs->rip - SYSCALL_BYTES;
    static const uint32_t numbers[] = { SYS_futex, SYS_clock_nanosleep, SYS_nanosleep, SYS_poll };
    uint8_t code[CODE_BEFORE];
    uint32_t number;

    if (waits_in == SYS_nanosleep && regs->rdi < CLOCKS)
        return SYS_clock_nanosleep;
    if (waits_in)
        return waits_in;
    if (pread(memory, code, sizeof(code), (off_t)(rip - sizeof(code))) != (ssize_t)sizeof(code))
        return 0;
    for (size_t at = sizeof(code) - 5; at > 0; at--) {
        memcpy(&number, code + at + 1, sizeof(number));
        for (size_t i = 0; code[at] == 0xb8 && i < sizeof(numbers) / sizeof(numbers[0]); i++)
            if (number == numbers[i])
                return number;
    }
    return 0;
}

bool tbd_held_resume(int memory, uint64_t waits_in, struct user_regs_struct *regs,
                     uint64_t *out_resumes)
{
    static const uint8_t instruction[SYSCALL_BYTES] = { 0x0f, 0x05 };
    uint8_t code[SYSCALL_BYTES];
    long result = (long)regs->rax;

    *out_resumes = 0;
    if ((long)regs->orig_rax < 0 || (result != -RESTARTSYS && result != -RESTARTNOINTR &&
                                     result != -RESTARTNOHAND && result != -RESTART_BLOCK))
        return true;
    if (pread(memory, code, sizeof(code), (off_t)(regs->rip - sizeof(code))) !=
            (ssize_t)sizeof(code) ||
        memcmp(code, instruction, sizeof(code)) != 0)
        return false;
    if (result == -RESTART_BLOCK)
        *out_resumes = regs->orig_rax == SYS_restart_syscall ? find_resumed(memory, waits_in, regs)
                                                             : regs->orig_rax;
    if (result == -RESTART_BLOCK && !*out_resumes)
        return false;
    regs->rax = result == -RESTART_BLOCK ? (unsigned long long)SYS_restart_syscall : regs->orig_rax;
    regs->rip -= sizeof(code);
    regs->orig_rax = (unsigned long long)NUMBER_NONE;
    return true;
}
