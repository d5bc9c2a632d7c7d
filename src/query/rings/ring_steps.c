// SPDX-License-Identifier: MIT
/* ring_steps.c - how many instructions of each entry ran (dump_rings.h)
 *
 * A block runs to its end, unless a signal comes in its middle.  That shows where the next entry is not one that may follow; the
 * handler's return, to an address in that block, then says how far it came:
 *
 *     main+10 (5 instructions)    handler+0    ... sigreturn    main+17 (the last 3 of them)
 *
 * A block that ends with an indirect transfer may be followed by anything: only the handler's return tells that it was
 * interrupted.  The depth of calls tells which block that was: all that a handler calls has returned before the handler does.
 * Where the next handler begins before the interrupted block goes on, the last one's return says how far it came.
 *
 * If a return seems to lead to a function's first instruction, to where no call of the ring returns, that may be a handler that
 * was left by longjmp: how far the block came is uncertain.
 *
 * The registers that were recorded where a handler began (format/stream/crash_values.h), and the kernel's frame on the stack then, tell all of
 * that, whatever the block ends with and wherever the handler goes; they may be lost.  Without them a handler that returns to somewhere else in the same block,
 * over the instruction that faulted, is taken at its word: what lies before that place counts as run.  The last entry of the thread
 * that died ends at its instruction pointer. */
#include "query/rings/dump_rings.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define MAX_CUTS 256u

struct ring_walk {
    struct tbd_rings *ring;
    const struct tbd_rings_thread *thread;
    struct tbd_rings_step *steps;
    uint64_t *return_sites; /* owned, sorted: where calls of the thread return to */
    size_t site_count;
    uint8_t *is_handler;     /* owned: for each block: a handler has begun with it */
    uint64_t cuts[MAX_CUTS]; /* interrupted steps whose handler has not returned, the latest last */
    size_t cut_count;
    uint32_t value; /* of the dump's, the next of the thread */
};

bool tbd_rings_can_follow(const struct tbd_rings_block *block, uint64_t next)
{
    switch (block->end) {
    case TBD_RINGS_GOES_ON: return next == block->after;
    case TBD_RINGS_JUMPS:
    case TBD_RINGS_CALLS: return next == block->target;
    case TBD_RINGS_BRANCHES: return next == block->target || next == block->after;
    case TBD_RINGS_FAULTS: return false;
    case TBD_RINGS_JUMPS_ANYWHERE:
    case TBD_RINGS_CALLS_ANYWHERE:
    case TBD_RINGS_RETURNS:
    case TBD_RINGS_SIGRETURN:
    case TBD_RINGS_UNKNOWN: break;
    }
    return true;
}

static const struct tbd_rings_block *block_at(const struct ring_walk *w, uint64_t at)
{
    return &w->ring->blocks[w->steps[at].block];
}

/* The number of instructions before `pc`, insn_count at its end; UINT32_MAX: none begins there. */
static uint32_t insns_before(const struct tbd_rings_block *block, uint64_t pc)
{
    for (uint32_t i = 0; i < block->insn_count; i++)
        if (block->insns[i].pc == pc)
            return i;
    return pc == block->after ? block->insn_count : UINT32_MAX;
}

/* ---- where calls return to ---- */

static bool is_call(const struct tbd_rings_block *block)
{
    return block->end == TBD_RINGS_CALLS || block->end == TBD_RINGS_CALLS_ANYWHERE;
}

static int compare_sites(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* False: no memory. */
static bool find_return_sites(struct ring_walk *w)
{
    w->return_sites = calloc(w->thread->count + 1, sizeof(*w->return_sites));
    for (uint64_t i = 0; w->return_sites != NULL && i < w->thread->count; i++)
        if (is_call(block_at(w, i)))
            w->return_sites[w->site_count++] = block_at(w, i)->after;
    if (w->return_sites != NULL)
        qsort(w->return_sites, w->site_count, sizeof(*w->return_sites), compare_sites);
    return w->return_sites != NULL;
}

static bool is_return_site(const struct ring_walk *w, uint64_t pc)
{
    return bsearch(&pc, w->return_sites, w->site_count, sizeof(pc), compare_sites) != NULL;
}

/* ---- interrupted blocks ---- */

/* ... before a signal whose handler returns to `next`: all, if that is another block's. */
static uint32_t insns_that_ran(const struct tbd_rings_block *block, uint64_t next)
{
    uint32_t insns = insns_before(block, next);

    return insns < block->insn_count ? insns : block->insn_count;
}

static void begin_handler(struct ring_walk *w, uint64_t at)
{
    w->steps[at].flags |= TBD_RINGS_HANDLER;
    w->is_handler[w->steps[at].block] = 1;
}

static void cut(struct ring_walk *w, uint64_t at)
{
    w->steps[at].flags |= TBD_RINGS_CUT | TBD_RINGS_UNCERTAIN;
    begin_handler(w, at + 1);
    if (w->cut_count == MAX_CUTS)
        w->cut_count = 0; /* handlers that never return */
    w->cuts[w->cut_count++] = at;
}

/* `insns` ran before the handler. */
static void settle(struct ring_walk *w, uint64_t at, uint32_t insns)
{
    struct tbd_rings_step *step = &w->steps[at];

    step->insns = (uint16_t)insns;
    step->flags &= (uint16_t)~TBD_RINGS_UNCERTAIN;
    if (insns == block_at(w, at)->insn_count)
        step->flags &= (uint16_t)~TBD_RINGS_CUT;
}

/* The handler that step `at` returns from has led back into the interrupted step. */
static void note_way_back(struct ring_walk *w, uint64_t at, uint64_t interrupted)
{
    if ((w->steps[interrupted].flags & (TBD_RINGS_CUT | TBD_RINGS_UNCERTAIN)) == TBD_RINGS_CUT)
        w->steps[at].flags |= TBD_RINGS_CAME_BACK;
}

/* ---- interrupted blocks that end anywhere, so that the handler looked like their target ---- */

/* May the next step be a handler's first? */
static bool is_unseen(const struct ring_walk *w, uint64_t at)
{
    const struct tbd_rings_block *after = block_at(w, at + 1);

    return block_at(w, at)->end >= TBD_RINGS_JUMPS_ANYWHERE && after->end != TBD_RINGS_SIGRETURN &&
           (w->steps[at].flags & TBD_RINGS_CUT) == 0 &&
           (w->steps[at + 1].flags & TBD_RINGS_HANDLER) == 0 &&
           !(block_at(w, at)->end == TBD_RINGS_RETURNS && is_return_site(w, after->insns[0].pc));
}

/* Does the way back from that handler, to `next`, lead into the step?  A return to where no call returns to may be interrupted at its end. */
static bool leads_back(const struct ring_walk *w, uint64_t at, uint64_t next, bool is_at_depth)
{
    const struct tbd_rings_block *block = block_at(w, at);

    return (is_at_depth && block->end == TBD_RINGS_RETURNS) ||
           insns_before(block, next) < block->insn_count;
}

/* How much deeper in calls a step was than the one after it. */
static int deeper(const struct ring_walk *w, uint64_t at)
{
    if ((w->steps[at + 1].flags & TBD_RINGS_HANDLER) != 0 || is_call(block_at(w, at)))
        return -1;
    return block_at(w, at)->end == TBD_RINGS_RETURNS;
}

/* The step before the handler that step `at` returns from: the handler's first step is one call deeper than `at`.  With
 * `any_depth` the nearest that fits: longjmp may have left out returns.  UINT64_MAX: there is none. */
static uint64_t step_before_handler(const struct ring_walk *w, uint64_t at, uint64_t next,
                                    bool any_depth)
{
    uint64_t floor = w->cut_count != 0 ? w->cuts[w->cut_count - 1] + 1 : 0;
    int64_t depth = 0; /* of the step after it */

    while (at-- > floor) {
        if ((any_depth || depth == 1) && is_unseen(w, at) && leads_back(w, at, next, depth == 1))
            return at;
        depth += deeper(w, at);
        if (!any_depth && depth <= 0 && block_at(w, at)->end != TBD_RINGS_SIGRETURN)
            break;
    }
    return UINT64_MAX;
}

static bool find_unseen(struct ring_walk *w, uint64_t at, uint64_t next)
{
    uint64_t before = step_before_handler(w, at, next, false);

    if (before != UINT64_MAX) {
        begin_handler(w, before + 1);
        w->steps[before].flags |= TBD_RINGS_CUT;
        settle(w, before, insns_that_ran(block_at(w, before), next));
        note_way_back(w, at, before);
        return true;
    }
    before = step_before_handler(w, at, next, true);
    if (before == UINT64_MAX)
        return false;
    begin_handler(w, before + 1);
    w->steps[before].flags |= TBD_RINGS_CUT | TBD_RINGS_UNCERTAIN;
    return true;
}

/* A handler has returned to `next`, or the next handler begins before that.  One that had changed where it returns to leaves its
 * step uncertain. */
static void come_back(struct ring_walk *w, uint64_t at, uint64_t next)
{
    for (size_t i = w->cut_count; i-- > 0;) {
        const struct tbd_rings_block *block = block_at(w, w->cuts[i]);

        if (insns_before(block, next) == UINT32_MAX && !tbd_rings_can_follow(block, next))
            continue;
        if (w->steps[w->cuts[i]].flags & TBD_RINGS_UNCERTAIN)
            settle(w, w->cuts[i], insns_that_ran(block, next));
        note_way_back(w, at, w->cuts[i]);
        w->cut_count = i;
        return;
    }
    if (w->is_handler[w->steps[at + 1].block])
        begin_handler(w, at + 1);
    else if (!find_unseen(w, at, next) && w->cut_count != 0)
        w->cut_count--;
}

/* ---- frames ---- */

/* After the address to which the handler returns, as the kernel has it. */
#define FRAME_AT(reg) (8 + offsetof(ucontext_t, uc_mcontext.gregs) + (size_t)(reg)*8)
#define USER_CS       0x33u

static uint64_t frame_word(const struct tbd_value_registers *at_start, size_t offset)
{
    uint64_t word = 0;

    if (at_start->stack_bytes >= offset + sizeof(word))
        memcpy(&word, at_start->stack + offset, sizeof(word));
    return word;
}

static bool is_handler_start(const struct tbd_value_registers *registers)
{
    return registers->gpr[TBD_RDI] - 1 < 64 &&
           registers->gpr[TBD_RDX] == registers->gpr[TBD_RSP] + 8 &&
           (frame_word(registers, FRAME_AT(REG_CSGSFS)) & 0xffff) == USER_CS;
}

/* If the next step is a handler's first and its registers were recorded: where the program was interrupted; else 0.  Of several signals that came
 * there, the first one's frame says it.  Steps are asked in order. */
static uint64_t interrupted_at(struct ring_walk *w, uint64_t at)
{
    const struct tbd_crash_dump *dump = &w->ring->dump;
    uint32_t thread = (uint32_t)(w->thread - w->ring->threads);
    uint64_t pc = 0, last_start = 0;

    if (w->thread->after != 0)
        return 0; /* they were recorded beside newer entries */
    for (; w->value < dump->head->value_count; w->value++) {
        const struct tbd_crash_file_value *value = &dump->values[w->value];
        const struct tbd_value_registers *registers = &value->is.registers;

        if (value->thread > thread || (value->thread == thread && value->entry > at + 1))
            break;
        if (value->thread != thread || value->entry != at + 1 || value->kind != TBD_VALUE_REGISTERS)
            continue;
        last_start = registers->rip;
        if (!pc && is_handler_start(registers))
            pc = frame_word(registers, FRAME_AT(REG_RIP));
    }
    return last_start == block_at(w, at + 1)->insns[0].pc ? pc : 0;
}

/* True: the step was interrupted, and is known to be. */
static bool was_interrupted(struct ring_walk *w, uint64_t at)
{
    uint64_t pc = interrupted_at(w, at);
    uint32_t insns = pc ? insns_before(block_at(w, at), pc) : UINT32_MAX;

    if (insns >= block_at(w, at)->insn_count)
        return false;
    cut(w, at);
    settle(w, at, insns);
    return true;
}

static bool seems_a_handler(struct ring_walk *w, uint64_t at, uint64_t next)
{
    return block_at(w, at)->end == TBD_RINGS_RETURNS && block_at(w, at)->insn_count > 1 &&
           !is_return_site(w, next) && block_at(w, at + 1)->end != TBD_RINGS_SIGRETURN &&
           tbd_rings_begins_function(w->ring, w->steps[at + 1].block);
}

/* ---- the walk ---- */

/* Where the thread that died was. */
static void end_walk(struct ring_walk *w)
{
    const struct tbd_crash_head *head = w->ring->dump.head;
    struct tbd_rings_step *last = &w->steps[w->thread->count - 1];
    uint32_t insns = UINT32_MAX;

    if (w->thread->is_dying && w->thread->after == 0 && head->signo != 0)
        insns = insns_before(&w->ring->blocks[last->block], head->regs.rip);
    if (insns == UINT32_MAX) {
        last->flags |= TBD_RINGS_UNCERTAIN;
        return;
    }
    if (insns < last->insns)
        last->flags |= TBD_RINGS_CUT;
    /* the instruction that faulted began */
    last->insns = (uint16_t)(insns < last->insns ? insns + 1 : insns);
}

static bool fill(struct ring_walk *w)
{
    for (uint64_t i = 0; i < w->thread->count; i++) {
        const struct tbd_rings_block *block = tbd_rings_block(w->ring, w->thread->entries[i]);

        if (block == NULL)
            return false;
        w->steps[i] = (struct tbd_rings_step){ .block = w->thread->entries[i],
                                               .insns = (uint16_t)block->insn_count };
    }
    return true;
}

static void walk(struct ring_walk *w)
{
    if (w->thread->when != NULL)
        return; /* of a table's entries nothing follows from their order */
    for (uint64_t i = 0; i + 1 < w->thread->count; i++) {
        uint64_t next = block_at(w, i + 1)->insns[0].pc;

        if (was_interrupted(w, i))
            continue;
        if (block_at(w, i)->end == TBD_RINGS_SIGRETURN)
            come_back(w, i, next);
        else if (!tbd_rings_can_follow(block_at(w, i), next))
            cut(w, i);
        else if (seems_a_handler(w, i, next))
            w->steps[i].flags |= TBD_RINGS_UNCERTAIN;
    }
    if (w->thread->count != 0)
        end_walk(w);
}

const struct tbd_rings_step *tbd_rings_steps(struct tbd_rings *ring,
                                             struct tbd_rings_thread *thread)
{
    struct ring_walk *w;

    if (thread->steps != NULL)
        return thread->steps;
    w = calloc(1, sizeof(*w));
    if (w == NULL)
        return NULL;
    thread->steps = calloc(thread->count + 1, sizeof(*thread->steps));
    *w = (struct ring_walk){ .ring = ring, .thread = thread, .steps = thread->steps };
    w->is_handler = calloc(ring->dump.head->block_count + 1, sizeof(*w->is_handler));
    if (thread->steps == NULL || w->is_handler == NULL || !fill(w) || !find_return_sites(w)) {
        free(thread->steps);
        thread->steps = NULL;
    }
    if (thread->steps != NULL)
        walk(w);
    free(w->is_handler);
    free(w->return_sites);
    free(w);
    return thread->steps;
}
