// SPDX-License-Identifier: MIT
/* thread_masks.c - see thread_masks.h
 *
 * A thread that waits for signals does not seem to block them meanwhile (kernel/signal.c, do_sigtimedwait()), but does
 * afterwards.  So a thread in that call is asked what it waits for; and one that is about to run may still be in the call,
 * so it is looked at when it has run.  All such threads are waited for together, with few looks: where many wait for a
 * processor each one's turn takes long, and the keeper's own, too. */
#include "hooks/probes/thread_masks.h"

#include "base/fmt.h"
#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/memory/proc.h"
#include "hooks/probes/trap.h"

#define TRIES         200
#define TRY_MS        5
#define LOOKS         2
#define LOOK_PAUSE_MS 2
#define RUN_MS                                                                                     \
    60000 /* for all threads to run: with hundreds that want two processors a turn takes long */
#define LONGEST_MS      64 /* between two looks at them */
#define SIGTRAP_BIT     (1ull << (SIGTRAP - 1))
#define DIRECTORY_BYTES 32768
#define MAX_UNSEEN      (DIRECTORY_BYTES / 24)
#define TEXT_BYTES      256
#define WAIT_TEXT       "128 0x" /* rt_sigtimedwait, and its first argument: proc_pid_syscall(5) */

/* One that has not run since it was first looked at. */
struct unseen_thread {
    uint32_t tid;
    uint64_t run_ns; /* on a processor, until then; 0: not known */
};

static struct unseen_thread unseen[MAX_UNSEEN];
static uint32_t unseen_count;

/* ---- what /proc says of a thread ---- */

struct status_facts {
    bool blocks_trap;
    bool has_trap; /* that waits: it has met one, and has not come to the handler yet */
    bool is_traced;
    bool has_shadow_stack;
};

static const char *after_spaces(const char *text)
{
    while (*text == ' ' || *text == '\t')
        text++;
    return text;
}

static bool has_word(const char *text, const char *word)
{
    for (; *text; text++)
        if (tbd_starts_with(text, word))
            return true;
    return false;
}

static uint64_t signals_of(const char *set)
{
    uint64_t bits;

    tbd_proc_hexadecimal(after_spaces(set), &bits);
    return bits;
}

/* Who is in the handler does not block it afterwards. */
static bool blocks_trap(uint64_t mask)
{
    return (mask & SIGTRAP_BIT) && !tbd_trap_is_handler_mask(mask);
}

static bool note_status(void *context, char *line)
{
    struct status_facts *facts = context;

    if (tbd_starts_with(line, "SigBlk:"))
        facts->blocks_trap |= blocks_trap(signals_of(line + 7));
    if (tbd_starts_with(line, "SigPnd:"))
        facts->has_trap = signals_of(line + 7) & SIGTRAP_BIT;
    if (tbd_starts_with(line, "TracerPid:"))
        facts->is_traced = strcmp(after_spaces(line + 10), "0") != 0;
    if (tbd_starts_with(line, "x86_Thread_features:"))
        facts->has_shadow_stack = has_word(line, "shstk");
    return true;
}

static long read_fact(uint32_t program, uint32_t tid, const char *name, char *text, size_t bytes)
{
    char path[96];

    tbd_fmt(path, sizeof(path), "/proc/%u/task/%u/%s", program, tid, name);
    return tbd_proc_read(path, text, bytes);
}

/* The system call in which the thread waits, or its place in the kernel where we may not know that. */
static long read_wait(uint32_t program, uint32_t tid, char *text)
{
    long got = read_fact(program, tid, "syscall", text, TEXT_BYTES);

    return got > 0 ? got : read_fact(program, tid, "wchan", text, TEXT_BYTES);
}

static bool is_running(const char *text)
{
    return tbd_starts_with(text, "running") || (text[0] == '0' && !text[1]);
}

/* Nanoseconds on a processor; 0: not known. */
static uint64_t run_time(uint32_t program, uint32_t tid)
{
    char text[64];
    uint64_t run_ns = 0;

    if (read_fact(program, tid, "schedstat", text, sizeof(text)) > 0)
        tbd_proc_decimal(text, &run_ns);
    return run_ns;
}

/* What it waits for may not be told to us: then it is taken for the worst. */
static bool waits_for_trap(const char *text)
{
    uint64_t set = UINT64_MAX;
    struct {
        uint64_t base, length;
    } to = { tbd_sys_pointer(&set), sizeof(set) }, from = { 0, sizeof(set) };

    if (tbd_starts_with(text, "do_sigtimedwait"))
        return true;
    if (!tbd_starts_with(text, WAIT_TEXT))
        return false;
    tbd_proc_hexadecimal(text + sizeof(WAIT_TEXT) - 1, &from.base);
    tbd_sys6(__NR_process_vm_readv, (uint64_t)tbd_sys_getpid(), tbd_sys_pointer(&to), 1,
             tbd_sys_pointer(&from), 1, 0);
    return set & SIGTRAP_BIT;
}

static void read_status(uint32_t program, uint32_t tid, struct status_facts *out)
{
    char path[96];

    tbd_fmt(path, sizeof(path), "/proc/%u/task/%u/status", program, tid);
    tbd_proc_lines(path, note_status, out);
}

static enum tbd_probe_refusal judge(const struct status_facts *facts)
{
    return facts->is_traced          ? TBD_PROBE_TRACED
           : facts->has_shadow_stack ? TBD_PROBE_SHADOW_STACK
           : facts->blocks_trap      ? TBD_PROBE_SIGNAL_BLOCKED
                                     : TBD_PROBE_OK;
}

/* What blocks it is looked at before and after the call in which it waits: it has to leave the call and enter it again
 * meanwhile to be missed.  *out_runs: it is about to run, or runs. */
static enum tbd_probe_refusal look_at_thread(uint32_t program, uint32_t tid, bool *out_runs)
{
    struct status_facts facts = { 0 };
    char text[TEXT_BYTES] = "";

    read_status(program, tid, &facts);
    *out_runs = read_wait(program, tid, text) > 0 && is_running(text);
    facts.blocks_trap |= waits_for_trap(text);
    read_status(program, tid, &facts);
    return judge(&facts);
}

/* ---- a look at all of them ---- */

static enum tbd_probe_refusal look_first(uint32_t program, uint32_t tid)
{
    uint64_t run_ns = run_time(program, tid);
    bool runs;
    enum tbd_probe_refusal refusal = look_at_thread(program, tid, &runs);

    if (refusal == TBD_PROBE_OK && runs && run_ns)
        unseen[unseen_count++] = (struct unseen_thread){ tid, run_ns };
    return refusal;
}

/* *out_has_run: it is judged. */
static enum tbd_probe_refusal look_once_more(uint32_t program, const struct unseen_thread *thread,
                                             bool *out_has_run)
{
    bool runs;

    *out_has_run = run_time(program, thread->tid) != thread->run_ns;
    return *out_has_run ? look_at_thread(program, thread->tid, &runs) : TBD_PROBE_OK;
}

static struct tbd_probe_reply look_at_unseen(uint32_t program)
{
    for (uint32_t i = 0; i < unseen_count;) {
        uint32_t tid = unseen[i].tid;
        bool has_run;
        enum tbd_probe_refusal refusal = look_once_more(program, &unseen[i], &has_run);

        if (refusal != TBD_PROBE_OK)
            return (struct tbd_probe_reply){ .refusal = refusal, .detail = tid };
        if (has_run)
            unseen[i] = unseen[--unseen_count];
        else
            i++;
    }
    return (struct tbd_probe_reply){ 0 };
}

/* Who does not come to run may be in the call. */
static struct tbd_probe_reply await_unseen(uint32_t program)
{
    struct tbd_probe_reply reply = look_at_unseen(program);

    for (uint64_t ms = 1, all = 0; all < RUN_MS && unseen_count && !reply.refusal; all += ms) {
        tbd_sys_pause_ms(ms);
        reply = look_at_unseen(program);
        ms = ms < LONGEST_MS ? 2 * ms : ms;
    }
    if (reply.refusal == TBD_PROBE_OK && unseen_count)
        reply = (struct tbd_probe_reply){ .refusal = TBD_PROBE_STARVED, .detail = unseen[0].tid };
    return reply;
}

/* A thread that waits for a processor may have met a trap already. */
static void note_for_handler(uint32_t program, uint32_t tid)
{
    struct status_facts facts = { 0 };
    char text[TEXT_BYTES] = "";
    uint64_t run_ns = run_time(program, tid);
    bool runs = read_wait(program, tid, text) > 0 && is_running(text);

    read_status(program, tid, &facts);
    if (runs || facts.has_trap)
        unseen[unseen_count++] = (struct unseen_thread){ tid, runs ? run_ns : 0 };
}

static bool may_have_met_trap(uint32_t program, const struct unseen_thread *thread)
{
    struct status_facts facts = { 0 };

    if (thread->run_ns && run_time(program, thread->tid) == thread->run_ns)
        return true;
    read_status(program, thread->tid, &facts);
    return facts.has_trap;
}

static void await_handlers(uint32_t program)
{
    for (uint64_t ms = 1, all = 0; all < RUN_MS && unseen_count; all += ms) {
        tbd_sys_pause_ms(ms);
        for (uint32_t i = 0; i < unseen_count;)
            if (may_have_met_trap(program, &unseen[i]))
                i++;
            else
                unseen[i] = unseen[--unseen_count];
        ms = ms < LONGEST_MS ? 2 * ms : ms;
    }
}

/* A look at once, one at threads that have run since, or only until they have come to the handler of a trap. */
enum look_way { LOOK_AT_ONCE, LOOK_AFTER_RUN, LOOK_FOR_HANDLERS };

static enum tbd_probe_refusal look_in_way(uint32_t program, uint32_t tid, enum look_way way)
{
    if (way != LOOK_FOR_HANDLERS)
        return look_first(program, tid);
    note_for_handler(program, tid);
    return TBD_PROBE_OK;
}

/* struct linux_dirent64: ino, off, reclen, type, name */
static struct tbd_probe_reply look_at_entries(uint32_t program, const uint8_t *entries, long bytes,
                                              enum look_way way)
{
    unseen_count = 0;
    for (long at = 0; at < bytes;) {
        const char *name = (const char *)entries + at + 19;
        enum tbd_probe_refusal refusal;
        uint64_t number;
        uint32_t tid;
        uint16_t length;

        tbd_proc_decimal(name, &number);
        tid = (uint32_t)number;
        refusal = tid ? look_in_way(program, tid, way) : TBD_PROBE_OK;
        if (refusal != TBD_PROBE_OK)
            return (struct tbd_probe_reply){ .refusal = refusal, .detail = tid };
        memcpy(&length, entries + at + 16, sizeof(length));
        at += length;
    }
    if (way == LOOK_FOR_HANDLERS)
        await_handlers(program);
    return way == LOOK_AFTER_RUN ? await_unseen(program) : (struct tbd_probe_reply){ 0 };
}

static struct tbd_probe_reply look(uint32_t program, enum look_way way)
{
    static _Alignas(8) uint8_t entries[DIRECTORY_BYTES];
    struct tbd_probe_reply reply = { 0 };
    char path[64];
    long bytes, fd;

    tbd_fmt(path, sizeof(path), "/proc/%u/task", program);
    fd = tbd_sys_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    while (fd >= 0 && !reply.refusal &&
           (bytes = tbd_sys3(__NR_getdents64, (uint64_t)fd, tbd_sys_pointer(entries),
                             sizeof(entries))) > 0)
        reply = look_at_entries(program, entries, bytes, way);
    if (fd >= 0)
        tbd_sys_close((int)fd);
    return reply;
}

#define FIRST       (-20)
#define KERNEL_NICE 20 /* what getpriority(2) of the kernel adds, and takes off */

/* Where many threads want a processor the keeper would wait for each file of /proc; not everybody may go first.  Returns how it was. */
static int64_t set_priority(int64_t nice)
{
    int64_t before = KERNEL_NICE - tbd_sys3(__NR_getpriority, PRIO_PROCESS, 0, 0);

    tbd_sys3(__NR_setpriority, PRIO_PROCESS, 0, (uint64_t)nice);
    return before;
}

static struct tbd_probe_reply look_before_others(uint32_t program, enum look_way way)
{
    int64_t nice = set_priority(FIRST);
    struct tbd_probe_reply reply = look(program, way);

    set_priority(nice);
    return reply;
}

/* Looks once, and up to `more` times again as long as that is the answer. */
static struct tbd_probe_reply look_while(uint32_t program, enum look_way way,
                                         enum tbd_probe_refusal answer, int more, uint64_t ms)
{
    struct tbd_probe_reply reply = look_before_others(program, way);

    for (int i = 0; i < more && reply.refusal == answer; i++) {
        tbd_sys_pause_ms(ms);
        reply = look_before_others(program, way);
    }
    return reply;
}

/* In a row: one look may miss a thread that is just about to wait. */
struct tbd_probe_reply tbd_thread_masks_refuse(uint32_t program)
{
    return look_while(program, LOOK_AFTER_RUN, TBD_PROBE_OK, LOOKS - 1, LOOK_PAUSE_MS);
}

struct tbd_probe_reply tbd_thread_masks_refuse_still(uint32_t program)
{
    return look_while(program, LOOK_AT_ONCE, TBD_PROBE_SIGNAL_BLOCKED, TRIES, TRY_MS);
}

void tbd_thread_masks_await_handlers(uint32_t program)
{
    look_before_others(program, LOOK_FOR_HANDLERS);
}
