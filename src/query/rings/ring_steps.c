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
 * Each handler remembers where what it interrupted goes on: nothing else tells that of a branch whose next block never began.
 *
 * If a return seems to lead to a function's first instruction, to where no call of the ring returns, that may be a handler that
 * was left by longjmp: how far the block came is uncertain.
 *
 * The registers that were recorded where a handler began (format/stream/crash_values.h), and the kernel's frame on the stack then, tell all of
 * that, whatever the block ends with and wherever the handler goes; they may be lost.  Without them a handler that returns to somewhere else in the same block,
 * over the instruction that faulted, is taken at its word: what lies before that place counts as run.  The last entry of the thread
 * that died ends at its instruction pointer. */
#include "query/rings/dump_rings.h"

#include "base/array.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define MAX_OPEN 256u

struct ring_walk {
    struct tbd_rings *ring;
    const struct tbd_rings_thread *thread;
    struct tbd_rings_step *steps;
    struct tbd_rings_handler *handlers; /* owned */
    size_t handler_count, handler_capacity;
    uint64_t *return_sites; /* owned, sorted: where calls of the thread return to */
    size_t site_count;
    uint8_t *is_handler;   /* owned: for each block: a handler has begun with it */
    size_t open[MAX_OPEN]; /* numbers of handlers that have not returned, the latest last */
    size_t open_count;
    uint32_t value; /* of the dump's, the next of the thread */
    bool is_short;  /* of memory */
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

/* False: no memory. */
static bool find_return_sites(struct ring_walk *w)
{
    w->return_sites = calloc(w->thread->count + 1, sizeof(*w->return_sites));
    for (uint64_t i = 0; w->return_sites != NULL && i < w->thread->count; i++)
        if (is_call(block_at(w, i)))
            w->return_sites[w->site_count++] = block_at(w, i)->after;
    if (w->return_sites != NULL)
        qsort(w->return_sites, w->site_count, sizeof(*w->return_sites), tbd_compare_words);
    return w->return_sites != NULL;
}

static bool is_return_site(const struct ring_walk *w, uint64_t pc)
{
    return bsearch(&pc, w->return_sites, w->site_count, sizeof(pc), tbd_compare_words) != NULL;
}

/* ---- interrupted blocks ---- */

/* ... before a signal whose handler returns to `next`: all, if that is another block's. */
static uint32_t insns_that_ran(const struct tbd_rings_block *block, uint64_t next)
{
    uint32_t insns = insns_before(block, next);

    return insns < block->insn_count ? insns : block->insn_count;
}

/* After step `at`, or in it.  `resumes` 0: it is not known yet. */
static size_t begin_handler(struct ring_walk *w, uint64_t at, uint64_t resumes)
{
    w->steps[at + 1].flags |= TBD_RINGS_HANDLER;
    w->is_handler[w->steps[at + 1].block] = 1;
    if (!tbd_array_grow(&w->handlers, w->handler_count, &w->handler_capacity, sizeof(*w->handlers)))
        w->is_short = true;
    else
        w->handlers[w->handler_count++] = (struct tbd_rings_handler){ at, resumes };
    return w->handler_count - 1;
}

/* It has still to return. */
static void open_handler(struct ring_walk *w, uint64_t at, uint64_t resumes)
{
    size_t handler = begin_handler(w, at, resumes);

    if (w->is_short)
        return;
    if (w->open_count == MAX_OPEN)
        w->open_count = 0; /* handlers that never return */
    w->open[w->open_count++] = handler;
}

static void cut(struct ring_walk *w, uint64_t at)
{
    w->steps[at].flags |= TBD_RINGS_CUT | TBD_RINGS_UNCERTAIN;
    open_handler(w, at, 0);
}

/* The interrupted step goes on at `next`: that tells how much of it ran. */
static void settle(struct ring_walk *w, uint64_t at, uint64_t next)
{
    struct tbd_rings_step *step = &w->steps[at];
    const struct tbd_rings_block *block = block_at(w, at);

    step->insns = (uint16_t)insns_that_ran(block, next);
    step->flags &= (uint16_t)~TBD_RINGS_UNCERTAIN;
    if (step->insns == block->insn_count)
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
    uint64_t floor = w->open_count != 0 ? w->handlers[w->open[w->open_count - 1]].before + 1 : 0;
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

/* The step that was interrupted, before the handler that step `at` returns from, to `next`: *out, UINT64_MAX if it is not sure which. */
static bool find_unseen(struct ring_walk *w, uint64_t at, uint64_t next, uint64_t *out)
{
    uint64_t before = step_before_handler(w, at, next, false);

    *out = UINT64_MAX;
    if (before != UINT64_MAX && block_at(w, before + 1)->insns[0].pc == next) {
        cut(w, before); /* the same handler begins again before anything goes on */
        begin_handler(w, at, 0);
        return true;
    }
    if (before != UINT64_MAX) {
        begin_handler(w, before, next);
        w->steps[before].flags |= TBD_RINGS_CUT;
        settle(w, before, next);
        *out = before;
        return true;
    }
    before = step_before_handler(w, at, next, true);
    if (before == UINT64_MAX)
        return false;
    begin_handler(w, before, 0);
    w->steps[before].flags |= TBD_RINGS_CUT | TBD_RINGS_UNCERTAIN;
    return true;
}

/* Does what the handler interrupted go on at `next`?  With `is_edited` it may have changed where it returns to.  Anything follows an
 * indirect transfer, but a handler's first block (`is_handler`) is more likely to be the next handler's. */
static bool returns_to(const struct ring_walk *w, size_t handler, uint64_t next, bool is_edited,
                       bool is_handler)
{
    uint64_t resumes = w->handlers[handler].resumes;
    const struct tbd_rings_block *block = block_at(w, w->handlers[handler].before);

    if (resumes != 0 && !is_edited)
        return resumes == next;
    if (insns_before(block, next) != UINT32_MAX)
        return true;
    return resumes == 0 && tbd_rings_can_follow(block, next) &&
           !(is_handler && block->end >= TBD_RINGS_JUMPS_ANYWHERE);
}

/* The latest of those that have not returned, and that goes on at `next`, in w->open; SIZE_MAX: there is none. */
static size_t open_handler_of(const struct ring_walk *w, uint64_t next, bool is_handler)
{
    for (int is_edited = 0; is_edited <= 1; is_edited++)
        for (size_t i = w->open_count; i-- > 0;)
            if (returns_to(w, w->open[i], next, is_edited != 0, is_handler))
                return i;
    return SIZE_MAX;
}

static void settle_handler(struct ring_walk *w, size_t handler, uint64_t next)
{
    if (w->handlers[handler].resumes != 0)
        return;
    w->handlers[handler].resumes = next;
    settle(w, w->handlers[handler].before, next);
}

/* A handler has returned to `next`, or the next handler begins before that.  One that had changed where it returns to leaves its
 * step uncertain. */
static void come_back(struct ring_walk *w, uint64_t at, uint64_t next)
{
    bool is_handler = w->is_handler[w->steps[at + 1].block] != 0;
    size_t i = open_handler_of(w, next, is_handler);
    uint64_t interrupted;

    if (i != SIZE_MAX) {
        settle_handler(w, w->open[i], next);
        note_way_back(w, at, w->handlers[w->open[i]].before);
        w->open_count = i;
    } else if (is_handler) {
        begin_handler(w, at, 0);
    } else if (find_unseen(w, at, next, &interrupted)) {
        if (interrupted != UINT64_MAX)
            note_way_back(w, at, interrupted);
    } else if (w->open_count != 0) {
        w->open_count--;
    }
}

/* A handler would have returned to `next`, but another one begins there. */
static void come_back_to_handler(struct ring_walk *w, uint64_t at, uint64_t next)
{
    size_t i = open_handler_of(w, next, false);
    uint64_t interrupted;

    if (i != SIZE_MAX) {
        settle_handler(w, w->open[i], next);
        w->open_count = i + 1;
        begin_handler(w, at, next);
        return;
    }
    if (!find_unseen(w, at, next, &interrupted) && w->open_count != 0)
        w->open_count--;
    open_handler(w, at, next);
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
    const struct tbd_rings_block *block = block_at(w, at);
    uint64_t pc = interrupted_at(w, at);
    bool is_inside = insns_before(block, pc) != UINT32_MAX;

    if (!pc || (!is_inside && !tbd_rings_can_follow(block, pc)))
        return false;
    if (!is_inside && block->end == TBD_RINGS_SIGRETURN) {
        come_back_to_handler(w, at, pc);
        return true;
    }
    open_handler(w, at, pc);
    w->steps[at].flags |= TBD_RINGS_CUT;
    settle(w, at, pc);
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

static int compare_handlers(const void *a, const void *b)
{
    const struct tbd_rings_handler *x = a, *y = b;

    return x->before < y->before ? -1 : x->before > y->before;
}

static void give_handlers(struct ring_walk *w, struct tbd_rings_walked *out)
{
    if (w->handler_count != 0)
        qsort(w->handlers, w->handler_count, sizeof(*w->handlers), compare_handlers);
    out->handlers = w->handlers;
    out->handler_count = w->handler_count;
}

uint64_t tbd_rings_resumes(const struct tbd_rings_thread *thread, uint64_t at)
{
    const struct tbd_rings_handler wanted = { .before = at }, *found = NULL;

    if (thread->walked.handler_count != 0)
        found = bsearch(&wanted, thread->walked.handlers, thread->walked.handler_count,
                        sizeof(wanted), compare_handlers);
    return found != NULL ? found->resumes : 0;
}

void tbd_rings_free_steps(struct tbd_rings_walked *walked)
{
    free(walked->steps);
    free(walked->handlers);
    *walked = (struct tbd_rings_walked){ .steps = NULL };
}

const struct tbd_rings_step *tbd_rings_steps(struct tbd_rings *ring,
                                             struct tbd_rings_thread *thread)
{
    struct ring_walk *w;

    if (thread->walked.steps != NULL)
        return thread->walked.steps;
    w = calloc(1, sizeof(*w));
    if (w == NULL)
        return NULL;
    *w = (struct ring_walk){ .ring = ring, .thread = thread };
    w->steps = thread->walked.steps = calloc(thread->count + 1, sizeof(*w->steps));
    w->is_handler = calloc(ring->dump.head->block_count + 1, sizeof(*w->is_handler));
    w->is_short = w->steps == NULL || w->is_handler == NULL || !fill(w) || !find_return_sites(w);
    if (!w->is_short)
        walk(w);
    give_handlers(w, &thread->walked);
    if (w->is_short)
        tbd_rings_free_steps(&thread->walked);
    free(w->is_handler);
    free(w->return_sites);
    free(w);
    return thread->walked.steps;
}
