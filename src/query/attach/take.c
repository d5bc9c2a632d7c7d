// SPDX-License-Identifier: MIT
/* take.c - see take.h */
#include "query/attach/take.h"

#include "base/clock.h"
#include "base/layout.h"
#include "format/probe/takeover.h"
#include "query/attach/attach_check.h"
#include "query/attach/boot_memory.h"
#include "query/attach/engine_image.h"
#include "query/attach/held_threads.h"
#include "query/attach/old_engine.h"
#include "query/attach/tell_engine.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/rseq.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LET_GO_TRIES 1000
#define LET_GO_NS    5000000L
#define FIRST        (-20)
#define VDSO_TRIES   100
#define MOMENT_NS    200000L
#define LATE_TRIES   5
#define LATE_NS      200000000L /* before the next one */
#define PAUSE_MS     1000       /* as the engine's options have it */

/* ---- registers ---- */

static struct tbd_regs engine_regs(const struct user_regs_struct *regs, pid_t tid)
{
    struct tbd_regs out = { .rip = regs->rip,
                            .rflags = regs->eflags & ~0x10100ull, /* RF, TF */
                            .fs_base = regs->fs_base,
                            .gs_base = regs->gs_base,
                            .thread = (uint32_t)tid };
    const unsigned long long gpr[TBD_REG_COUNT] = {
        [TBD_RAX] = regs->rax, [TBD_RCX] = regs->rcx, [TBD_RDX] = regs->rdx, [TBD_RBX] = regs->rbx,
        [TBD_RSP] = regs->rsp, [TBD_RBP] = regs->rbp, [TBD_RSI] = regs->rsi, [TBD_RDI] = regs->rdi,
        [TBD_R8] = regs->r8,   [TBD_R9] = regs->r9,   [TBD_R10] = regs->r10, [TBD_R11] = regs->r11,
        [TBD_R12] = regs->r12, [TBD_R13] = regs->r13, [TBD_R14] = regs->r14, [TBD_R15] = regs->r15,
    };

    for (unsigned i = 0; i < TBD_REG_COUNT; i++)
        out.gpr[i] = gpr[i];
    return out;
}

static bool describe(const struct tbd_remote *remote, const struct tbd_held_thread *thread,
                     struct tbd_takeover_thread *out)
{
    struct user_regs_struct regs = thread->regs;

    *out = (struct tbd_takeover_thread){ .mask = thread->mask,
                                         .rseq = thread->rseq,
                                         .rseq_bytes = thread->rseq_bytes,
                                         .rseq_signature = thread->rseq_signature };
    if (!tbd_held_resume(remote->memory, thread->waits_in, &regs, &out->resumes))
        return false;
    out->regs = engine_regs(&regs, thread->tid);
    return true;
}

/* Where the engine has said, as if it had been called there. */
static struct user_regs_struct entering(const struct user_regs_struct *regs,
                                        const struct tbd_takeover_thread *given)
{
    struct user_regs_struct out = *regs;

    out.orig_rax = UINT64_MAX;
    out.rip = given->entry;
    out.rdi = given->argument;
    out.rsp = (given->stack & ~15ull) - 8;
    out.gs_base = given->gs_base;
    out.eflags = 0x202;
    return out;
}

/* ---- the phases ---- */

struct take_over {
    struct tbd_remote remote;
    struct tbd_engine_file file;
    struct tbd_held held; /* all threads but the borrowed one */
    /* As they were at an earlier stop, after which the kernel has resumed their calls. */
    struct tbd_held before;
    struct tbd_boot_memory boot;
    struct tbd_takeover_thread *threads;
    size_t count;
    const char *options;
    bool records;
    bool is_late;         /* they would have stood still for too long */
    uint64_t pause_ns;    /* at most */
    uint64_t start_ns;    /* of the stop */
    bool is_unregistered; /* the kernel does not know the threads' restartable sequences any more */
};

static bool fail(const struct take_over *taking, struct tbd_query_error *error)
{
    const char *why = tbd_boot_memory_answer(&taking->boot)->why;
    size_t length = strcspn(why, "\n");

    if (strncmp(why, "tbd: ", 5) == 0)
        return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "process %d: %.*s", (int)taking->remote.pid,
                               (int)(length - 5 < 150 ? length - 5 : 150), why + 5);
    return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "process %d: the engine does not start",
                           (int)taking->remote.pid);
}

static bool prepare(struct take_over *taking, struct tbd_query_error *error)
{
    long result = tbd_engine_map(&taking->remote, &taking->file);

    if (result >= 0)
        result = tbd_boot_memory_make(&taking->boot, &taking->remote, taking->options);
    if (result < 0)
        return tbd_query_wrong(error, TBD_SYSTEM, 0, 0,
                               "process %d: the engine cannot be mapped: %s",
                               (int)taking->remote.pid, strerror((int)-result));
    return tbd_boot_memory_call(&taking->boot, &taking->remote,
                                tbd_engine_boot_function(&taking->file), TBD_TAKEOVER_PREPARE) ||
           fail(taking, error);
}

/* ---- what the kernel must not do any more ---- */

/* In the middle of the vDSO's functions a thread may have read what a recording does not have. */
static bool are_out_of_vdso(struct take_over *taking)
{
    struct tbd_attach_range vdso;

    if (!taking->records || !tbd_attach_find_vdso(taking->remote.pid, &vdso))
        return true;
    for (size_t i = 0; i < taking->held.count; i++)
        if (!tbd_held_step_out(&taking->held.all[i], vdso.start, vdso.end,
                               taking->start_ns + taking->pause_ns))
            return false;
    return true;
}

static bool is_late(struct take_over *taking)
{
    taking->is_late |= tbd_clock_ns() > taking->start_ns + taking->pause_ns;
    return taking->is_late;
}

/* All threads are stopped, for a recording outside of the vDSO. */
static bool hold_all(struct take_over *taking, struct tbd_query_error *error)
{
    for (int i = 0; i < VDSO_TRIES; i++) {
        taking->start_ns = tbd_clock_ns();
        if (!tbd_held_stop(&taking->held, taking->remote.pid, taking->remote.tid,
                           taking->start_ns + taking->pause_ns, error)) {
            taking->is_late = error->status == TBD_BUSY;
            return false;
        }
        if (are_out_of_vdso(taking))
            return !is_late(taking);
        if (is_late(taking))
            return false;
        if (!tbd_held_let_run(&taking->held, &taking->before, error))
            return false;
    }
    return tbd_query_wrong(error, TBD_BUSY, 0, 0,
                           "threads of process %d are in the vDSO all the time",
                           (int)taking->remote.pid);
}

static bool begin_change(struct take_over *taking, size_t index, uint64_t flags)
{
    const struct tbd_takeover_thread *thread = &taking->threads[index];
    const uint64_t arguments[6] = { thread->rseq, thread->rseq_bytes, flags,
                                    thread->rseq_signature };

    if (!thread->rseq)
        return false;
    return index ? tbd_held_call_begin(&taking->held.all[index - 1], taking->remote.syscall_at,
                                       SYS_rseq, arguments)
                 : tbd_remote_call_system(&taking->remote, SYS_rseq, arguments) == 0;
}

/* All threads change theirs.  Who has none, or whose the kernel does not give up, keeps what it has. */
static bool change_rseq(struct take_over *taking, uint64_t flags)
{
    bool *begun = calloc(taking->count + 1, sizeof(*begun));

    if (!begun)
        return false;
    for (size_t i = 0; i < taking->count; i++)
        begun[i] = begin_change(taking, i, flags);
    for (size_t i = 0; i < taking->count; i++)
        if (!begun[i] || (i && tbd_held_call_end(&taking->held.all[i - 1]) != 0))
            taking->threads[i].rseq = 0;
    free(begun);
    return true;
}

static bool unregister_all(struct take_over *taking, struct tbd_query_error *error)
{
    taking->is_unregistered = change_rseq(taking, RSEQ_FLAG_UNREGISTER);
    return taking->is_unregistered || tbd_query_wrong(error, TBD_NOMEM, 0, 0, "no memory");
}

static void register_again(struct take_over *taking)
{
    if (taking->is_unregistered)
        (void)change_rseq(taking, 0);
}

static bool put_vectors(struct take_over *taking, struct tbd_query_error *error)
{
    struct tbd_remote *remote = &taking->remote;
    bool done = tbd_boot_memory_put_vectors(&taking->boot, remote, 0, remote->vectors);

    for (size_t i = 0; done && i < taking->held.count; i++) {
        static uint8_t state[TBD_REMOTE_VECTOR_BYTES];

        done = tbd_remote_read_vectors(taking->held.all[i].tid, state) != 0 &&
               tbd_boot_memory_put_vectors(&taking->boot, remote, i + 1, state);
    }
    return done || tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "process %d: vector registers: %s",
                                   (int)remote->pid, strerror(errno));
}

static bool describe_all(struct take_over *taking, struct tbd_query_error *error)
{
    struct tbd_held_thread borrowed = { .tid = taking->remote.tid,
                                        .regs = taking->remote.saved,
                                        .mask = taking->remote.mask,
                                        .waits_in = taking->remote.waits_in };
    bool done = taking->held.count + 1 <= TBD_TAKEOVER_THREADS;

    taking->count = taking->held.count + 1;
    taking->threads = calloc(taking->count, sizeof(*taking->threads));
    if (!taking->threads || !done)
        return tbd_query_wrong(error, TBD_NOMEM, 0, 0, "process %d has too many threads",
                               (int)taking->remote.pid);
    tbd_held_read_rseq(borrowed.tid, &borrowed);
    done = describe(&taking->remote, &borrowed, &taking->threads[0]);
    tbd_held_recall(&taking->held, &taking->before);
    for (size_t i = 0; i < taking->held.count; i++)
        done &= describe(&taking->remote, &taking->held.all[i], &taking->threads[i + 1]);
    return done || tbd_query_wrong(
                       error, TBD_SYSTEM, 0, 0,
                       "process %d waits in a system call of which tbd does not know how to go on",
                       (int)taking->remote.pid);
}

/* For that time the borrowed thread comes before others, as we do: on a machine that is busy it has no processor for seconds. */
static bool call_take(struct take_over *taking)
{
    id_t tid = (id_t)taking->remote.tid;
    int before = getpriority(PRIO_PROCESS, tid);
    bool done;

    setpriority(PRIO_PROCESS, tid, FIRST);
    done = tbd_boot_memory_call(&taking->boot, &taking->remote,
                                tbd_engine_boot_function(&taking->file), TBD_TAKEOVER_TAKE);
    setpriority(PRIO_PROCESS, tid, before);
    return done;
}

/* The kernel takes a section's address away when it has a thread wait outside of one: who has one is using them.  Without turns the
 * engine has none (hooks/threads/rseq.h), and a program that has asked before would try its own for ever. */
static bool have_no_sections(const struct take_over *taking, struct tbd_query_error *error)
{
    for (size_t i = 0; i < taking->count; i++) {
        uint64_t area = taking->threads[i].rseq, section = 0;

        if (!area ||
            !tbd_remote_read(&taking->remote, area + offsetof(struct rseq, rseq_cs), &section,
                             sizeof(section)) ||
            !section)
            continue;
        tbd_query_wrong(error, TBD_SYSTEM, 0, 0,
                        "process %d uses restartable sequences (rseq), which would not end in it",
                        (int)taking->remote.pid);
        strcpy(error->hint, "`tbd record -p` follows them; so does `tbd crash` from the start");
        return false;
    }
    return true;
}

static bool take(struct take_over *taking, struct tbd_query_error *error)
{
    if (!describe_all(taking, error) || (!taking->records && !have_no_sections(taking, error)) ||
        (taking->records && (!put_vectors(taking, error) || !unregister_all(taking, error))) ||
        is_late(taking))
        return false;
    tbd_boot_memory_limit(&taking->boot, taking->start_ns + taking->pause_ns);
    if (!tbd_boot_memory_put_threads(&taking->boot, &taking->remote, taking->threads,
                                     taking->count) ||
        !call_take(taking)) {
        taking->is_late = tbd_boot_memory_answer(&taking->boot)->is_late;
        return !taking->is_late && fail(taking, error);
    }
    return tbd_boot_memory_get_threads(&taking->remote, taking->threads, taking->count) ||
           fail(taking, error);
}

/* The borrowed thread last: until then it has its vector state to get back. */
static void send_all(struct take_over *taking)
{
    for (size_t i = 0; i < taking->held.count; i++) {
        struct user_regs_struct regs = entering(&taking->held.all[i].regs, &taking->threads[i + 1]);

        tbd_held_send(&taking->held.all[i], &regs);
    }
    tbd_held_free(&taking->held);
    taking->remote.saved = entering(&taking->remote.saved, &taking->threads[0]);
    taking->remote.mask = UINT64_MAX;
}

/* ---- all of it ---- */

/* What has been prepared ends, and all go on where they were. */
static void undo(struct take_over *taking, bool is_prepared)
{
    struct tbd_remote *remote = &taking->remote;

    register_again(taking);
    tbd_held_go_on(&taking->held);
    if (is_prepared)
        tbd_boot_memory_call(&taking->boot, remote, tbd_engine_boot_function(&taking->file),
                             TBD_TAKEOVER_GIVE_UP);
    tbd_remote_unmap(remote, TBD_ENGINE_BASE, TBD_ENGINE_END - TBD_ENGINE_BASE);
}

static bool take_borrowed(struct take_over *taking, struct tbd_taken *out,
                          struct tbd_query_error *error)
{
    struct tbd_remote *remote = &taking->remote;
    bool is_prepared, done = false;

    if (!tbd_old_engine_remove(remote, &taking->before, error)) {
        tbd_held_free(&taking->before);
        return false;
    }
    is_prepared = prepare(taking, error);
    done = is_prepared && hold_all(taking, error) && take(taking, error);
    if (done) {
        tbd_boot_memory_free(remote);
        send_all(taking);
        *out = (struct tbd_taken){ taking->count, tbd_clock_ns() - taking->start_ns };
    } else {
        undo(taking, is_prepared);
    }
    tbd_held_free(&taking->before);
    free(taking->threads);
    return done;
}

/* For a recording outside of the vDSO. */
static bool borrow(struct take_over *taking, pid_t pid, struct tbd_query_error *error)
{
    const struct timespec moment = { 0, MOMENT_NS };
    struct tbd_attach_range vdso;

    for (int i = 0; i < VDSO_TRIES; i++) {
        if (!tbd_old_engine_borrow(&taking->remote, pid, error))
            return false;
        if (!taking->records || !tbd_attach_find_vdso(pid, &vdso) ||
            tbd_remote_step_out(&taking->remote, vdso.start, vdso.end))
            return true;
        tbd_remote_let_go(&taking->remote);
        nanosleep(&moment, NULL);
    }
    return tbd_query_wrong(error, TBD_BUSY, 0, 0,
                           "a thread of process %d is in the vDSO all the time", (int)pid);
}

static bool borrow_and_take(struct take_over *taking, pid_t pid, struct tbd_taken *out,
                            struct tbd_query_error *error)
{
    bool done;

    if (!tbd_engine_boot_function(&taking->file))
        return tbd_query_wrong(error, TBD_SYSTEM, 0, 0, "tbd-replay is of another build");
    if (!borrow(taking, pid, error))
        return false;
    done = tbd_remote_keep_vectors(&taking->remote, error) && take_borrowed(taking, out, error);
    tbd_remote_let_go(&taking->remote);
    return done;
}

/* In milliseconds, as it is among the options. */
static uint64_t read_pause(const char *options)
{
    static const char name[] = "pause=";
    const char *at = options;

    while (at && strncmp(at, name, sizeof(name) - 1) != 0) {
        at = strchr(at, ',');
        at = at ? at + 1 : NULL;
    }
    return at ? strtoull(at + sizeof(name) - 1, NULL, 10) : PAUSE_MS;
}

static bool take_once(pid_t pid, const char *options, bool records, bool *out_late,
                      struct tbd_taken *out, struct tbd_query_error *error)
{
    struct take_over taking = { .options = options,
                                .records = records,
                                .pause_ns = read_pause(options) * 1000000 };
    sigset_t all, before;
    int priority;
    bool done;

    if (!tbd_attach_check(pid, error) || !tbd_old_engine_await_alone(pid, error) ||
        !tbd_engine_open(&taking.file, error))
        return false;
    sigfillset(&all); /* half-way the process would be lost */
    sigprocmask(SIG_BLOCK, &all, &before);
    priority = getpriority(PRIO_PROCESS, 0);
    setpriority(PRIO_PROCESS, 0, FIRST); /* all wait for us; not everybody may do that */
    done = borrow_and_take(&taking, pid, out, error);
    setpriority(PRIO_PROCESS, 0, priority);
    sigprocmask(SIG_SETMASK, &before, NULL);
    tbd_engine_close(&taking.file);
    *out_late = taking.is_late;
    return done;
}

bool tbd_take(pid_t pid, const char *options, bool records, struct tbd_taken *out,
              struct tbd_query_error *error)
{
    const struct timespec moment = { 0, LATE_NS };

    for (int i = 1; i <= LATE_TRIES; i++) {
        bool is_late = false;

        *error = (struct tbd_query_error){ 0 };
        if (take_once(pid, options, records, &is_late, out, error))
            return true;
        if (!is_late)
            return false;
        fprintf(stderr,
                "tbd: process %d would have stood still for more than %" PRIu64
                " ms, and goes on as it was%s\n",
                (int)pid, read_pause(options), i < LATE_TRIES ? ": tbd tries again" : "");
        nanosleep(&moment, NULL);
    }
    tbd_query_wrong(error, TBD_BUSY, 0, 0, "process %d does not stop in time", (int)pid);
    strcpy(error->hint,
           "--pause=MS lets it stand still for longer; or try again when less else runs");
    return false;
}

/* ---- letting go ---- */

bool tbd_let_go_process(pid_t pid, struct tbd_query_error *error)
{
    const struct timespec moment = { 0, LET_GO_NS };

    if (!tbd_tell_engine(pid, TBD_STOP_VALUE, error))
        return false;
    for (int i = 0; i < LET_GO_TRIES; i++) {
        if (!tbd_attach_has_stream(pid))
            return true;
        nanosleep(&moment, NULL);
    }
    return tbd_query_wrong(error, TBD_BUSY, 0, 0, "process %d does not leave the engine yet",
                           (int)pid);
}
