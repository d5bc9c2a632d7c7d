// SPDX-License-Identifier: MIT
/* rseq.c - see rseq.h; after kernel/rseq.c of the kernel */
#include "hooks/threads/rseq.h"

#include "base/cpuid.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/memory/effects.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/stream/leaving.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/threads.h"

#define USER_END       0x7ffffffff000ull
#define PROCESSOR_GDT  0x7bu /* __CPUNODE_SEG of the kernel: its limit is the processor's number, */
#define NODE_SHIFT     12    /* and the node's above it, as the vDSO reads them */
#define NOT_REGISTERED ((uint32_t)RSEQ_CPU_ID_UNINITIALIZED)
#define SECTION_AT     offsetof(struct rseq, rseq_cs)
#define FLAGS_AT       offsetof(struct rseq, flags)

/* The words that the kernel writes, and how many bytes of the area it uses if it has them.  The
 * headers of older kernels lack the last two. */
enum word { WORD_START, WORD_CPU, WORD_NODE, WORD_MM, WORDS };
static const struct {
    uint32_t at, needs;
} words[WORDS] = {
    [WORD_START] = { offsetof(struct rseq, cpu_id_start), TBD_RSEQ_ORIGINAL_FEATURES },
    [WORD_CPU] = { offsetof(struct rseq, cpu_id), TBD_RSEQ_ORIGINAL_FEATURES },
    [WORD_NODE] = { 20, 24 },
    [WORD_MM] = { 24, 28 },
};

static uint64_t feature_bytes;
static bool has_rdpid;

/* ---- the area ---- */

static bool knows_rdpid(void)
{
    uint32_t r[4];

    tbd_cpuid(0, 0, r);
    if (r[0] < 7)
        return false;
    tbd_cpuid(7, 0, r);
    return r[2] >> 22 & 1;
}

/* As the vDSO reads it; lsl takes twenty times as long. */
static uint32_t place_now(void)
{
    uint64_t place = 0;
    uint32_t cpu = 0, node = 0;
    bool is_there;

    if (has_rdpid) {
        __asm__ volatile("rdpid %0" : "=r"(place));
        return (uint32_t)place;
    }
    __asm__ volatile("lsl %[segment], %[place]"
                     : [place] "+r"(place), "=@ccz"(is_there)
                     : [segment] "r"((uint64_t)PROCESSOR_GDT));
    if (is_there)
        return (uint32_t)place;
    tbd_sys3(__NR_getcpu, tbd_sys_pointer(&cpu), tbd_sys_pointer(&node), 0);
    return cpu | node << NODE_SHIFT;
}

/* Old contents, which the effects borrow; only the holder of the turn lock uses them. */
static uint32_t old_words[WORDS];
static uint64_t old_section;

static bool put(struct tbd_effects *effects, uint64_t address, const void *now, void *old,
                size_t bytes)
{
    if (!tbd_copy_from_program(old, address, bytes))
        return false;
    if (memcmp(old, now, bytes) == 0)
        return true;
    if (!tbd_copy_to_program(address, now, bytes))
        return false;
    if (effects)
        tbd_effects_add(effects, address, old, bytes);
    return true;
}

/* One thread runs at a time, so each has the number 0 among those of its memory that run. */
static void fill_words(uint32_t *out, uint32_t cpu, uint32_t place)
{
    out[WORD_START] = cpu == NOT_REGISTERED ? 0 : cpu;
    out[WORD_CPU] = cpu;
    out[WORD_NODE] = place >> NODE_SHIFT;
    out[WORD_MM] = 0;
}

static bool put_words(const struct tbd_rseq *own, const uint32_t *now, struct tbd_effects *effects)
{
    for (unsigned i = 0; i < WORDS; i++)
        if (words[i].needs <= feature_bytes &&
            !put(effects, own->area + words[i].at, &now[i], &old_words[i], sizeof(now[i])))
            return false;
    return true;
}

bool tbd_rseq_show(struct tbd_rseq *own, struct tbd_effects *effects)
{
    uint32_t now[WORDS];

    own->place = place_now();
    fill_words(now, own->place & ((1u << NODE_SHIFT) - 1), own->place);
    return put_words(own, now, effects);
}

bool tbd_rseq_forget(struct tbd_rseq *own, struct tbd_effects *effects)
{
    struct tbd_rseq shown = { .area = own->area ? own->area : own->kept };
    uint32_t now[WORDS];

    fill_words(now, NOT_REGISTERED, 0);
    if (!put_words(&shown, now, effects))
        return false;
    *own = (struct tbd_rseq){ 0 };
    return true;
}

void tbd_rseq_take_over(struct tbd_rseq *own, uint64_t features)
{
    has_rdpid = knows_rdpid();
    feature_bytes = features ? features : TBD_RSEQ_ORIGINAL_FEATURES;
    if (!own->area)
        return;
    if (!tbd_threads.is_free) {
        tbd_rseq_show(own, NULL);
        return;
    }
    *(uint32_t *)(own->area + words[WORD_CPU].at) = (uint32_t)RSEQ_CPU_ID_REGISTRATION_FAILED;
    own->kept = own->area;
    own->area = 0;
}

/* ---- critical sections ---- */

typedef bool (*read_function)(void *dst, uint64_t src, size_t bytes);

/* Where a thread is that was interrupted. */
enum section { SECTION_NONE, SECTION_LEFT, SECTION_INSIDE, SECTION_WRONG };

static bool is_section_good(const struct rseq_cs *cs)
{
    uint64_t end = cs->start_ip + cs->post_commit_offset;

    return cs->version == 0 && cs->start_ip < USER_END && end < USER_END && end >= cs->start_ip &&
           cs->abort_ip < USER_END && cs->abort_ip - cs->start_ip >= cs->post_commit_offset;
}

/* The word before the abort address shows that the program means it. */
static bool has_signature(const struct tbd_rseq *own, const struct rseq_cs *cs, read_function read)
{
    uint32_t signature;

    return read(&signature, cs->abort_ip - sizeof(signature), sizeof(signature)) &&
           signature == own->signature;
}

static enum section find_section(const struct tbd_rseq *own, uint64_t rip, read_function read,
                                 uint64_t *abort_ip)
{
    uint64_t at = 0;
    uint32_t flags = 0;
    struct rseq_cs cs;

    if (!read(&at, own->area + SECTION_AT, sizeof(at)))
        return SECTION_WRONG;
    if (!at)
        return SECTION_NONE;
    if (at >= USER_END || !read(&cs, at, sizeof(cs)) || !is_section_good(&cs) ||
        !has_signature(own, &cs, read))
        return SECTION_WRONG;
    if (rip - cs.start_ip >= cs.post_commit_offset)
        return SECTION_LEFT;
    if (cs.flags || !read(&flags, own->area + FLAGS_AT, sizeof(flags)) || flags)
        return SECTION_WRONG; /* they have never done what they should, and are refused */
    *abort_ip = cs.abort_ip;
    return SECTION_INSIDE;
}

static bool read_safely(void *dst, uint64_t src, size_t bytes)
{
    return tbd_copy_from_program(dst, src, bytes);
}

bool tbd_rseq_leave_section(struct tbd_thread *thread, struct tbd_effects *effects)
{
    const struct tbd_rseq *own = &tbd_context_now()->rseq;
    static const uint64_t none;
    uint64_t abort_ip = thread->regs.rip;
    enum section where = SECTION_NONE;

    if (own->area)
        where = find_section(own, thread->regs.rip, read_safely, &abort_ip);
    if (where == SECTION_NONE)
        return true;
    if (where == SECTION_WRONG ||
        !put(effects, own->area + SECTION_AT, &none, &old_section, sizeof(none)))
        return false;
    thread->regs.rip = abort_ip;
    return true;
}

/* ---- taken over ---- */

/* The engine has no handlers yet, or any more: the kernel copies. */
static bool read_natively(void *dst, uint64_t src, size_t bytes)
{
    struct iovec to = { dst, bytes }, from = { (void *)src, bytes };

    return tbd_sys6(__NR_process_vm_readv, (uint64_t)tbd_sys_getpid(), tbd_sys_pointer(&to), 1,
                    tbd_sys_pointer(&from), 1, 0) == (long)bytes;
}

static void write_natively(uint64_t dst, const void *bytes, size_t count)
{
    struct iovec from = { (void *)(uintptr_t)bytes, count }, to = { (void *)dst, count };

    tbd_sys6(__NR_process_vm_writev, (uint64_t)tbd_sys_getpid(), tbd_sys_pointer(&from), 1,
             tbd_sys_pointer(&to), 1, 0);
}

/* The kernel would have ended a section that the stop came in. */
void tbd_rseq_end_section(const struct tbd_rseq *own, struct tbd_regs *regs)
{
    static const uint64_t none;
    uint64_t abort_ip;

    if (!own->area || find_section(own, regs->rip, read_natively, &abort_ip) != SECTION_INSIDE)
        return;
    regs->rip = abort_ip;
    write_natively(own->area + SECTION_AT, &none, sizeof(none));
}

void tbd_rseq_unregister(struct tbd_rseq *own)
{
    if (own->area &&
        tbd_sys4(__NR_rseq, own->area, own->bytes, RSEQ_FLAG_UNREGISTER, own->signature) != 0)
        own->area = 0;
}

void tbd_rseq_take(struct tbd_rseq *own)
{
    tbd_rseq_take_over(own, feature_bytes);
}

/* ---- when it is due ---- */

static void send(struct tbd_thread *thread, struct tbd_effects *effects, bool is_aborted)
{
    struct tbd_msg_rseq message = { .rip = thread->regs.rip,
                                    .flags = is_aborted ? TBD_RSEQ_ABORTED : 0 };
    uint32_t ignored = 0;
    struct tbd_effect_head head = { .kind = TBD_MSG_RSEQ,
                                    .data = &message,
                                    .bytes = sizeof(message),
                                    .write_count = &message.write_count,
                                    .flags = &ignored };

    tbd_effects_send(effects, &tbd_recording.ring, thread, &tbd_memory.pages, &head, NULL, 0);
}

bool tbd_rseq_settle(struct tbd_thread *thread, bool looks)
{
    struct tbd_rseq *own = &tbd_context_now()->rseq;
    struct tbd_effects *effects;
    uint64_t rip = thread->regs.rip;
    bool is_good;

    if (!own->area || (!own->is_preempted && (!looks || place_now() == own->place)))
        return false;
    effects = tbd_effects_get();
    if (!effects)
        tbd_detach(thread, "no memory for its restartable sequences (rseq)", TBD_END_WHOLE);
    tbd_effects_clear(effects);
    own->is_preempted = false;
    own->place = place_now(); /* once, also if the area is wrong */
    is_good = tbd_rseq_leave_section(thread, effects) && tbd_rseq_show(own, effects);
    if (!tbd_effects_are_none(effects) || thread->regs.rip != rip)
        send(thread, effects, thread->regs.rip != rip);
    if (!is_good)
        tbd_signals_force_segv(thread);
    return true;
}

/* ---- natively ---- */

/* Other threads may run from now on: the thread must not stay where only the engine kept them
 * away.  The kernel forgets the section itself. */
void tbd_rseq_install(const struct tbd_rseq *own, struct tbd_regs *regs)
{
    uint64_t abort_ip;

    if (own->area && find_section(own, regs->rip, read_natively, &abort_ip) == SECTION_INSIDE)
        regs->rip = abort_ip;
    if (own->area || own->kept)
        tbd_sys4(__NR_rseq, own->area ? own->area : own->kept, own->bytes, 0, own->signature);
}
