// SPDX-License-Identifier: MIT
/* ring_calls.c - calls and returns of a ring (dump_rings.h)
 *
 * The ring is run through from its oldest entry with a stack of return addresses: a call pushes one, a return takes one away.  A
 * return to an address that is not the topmost one leaves frames (exceptions, longjmp): down to the one that it
 * returns to, or to one of the same function; so does an indirect jump into the middle of a function.  One to the place after an
 * earlier call is longjmp: the stack is what it was at that call.  A handler has the interrupted frame under it.
 *
 * A function that another one jumps to is entered, too, and goes on in its frame: both end where that does.  So is the one that
 * handles a signal.  Import stubs are passed over, and what leads to a function waits while a handler runs (struct ring_way).
 *
 * A return with an empty stack leaves a function that was entered before the ring begins.  What is below the ring's frames follows
 * from the stack at the end: the frames there that the ring has not pushed, and above them, in time before, those that
 * were returned from. */
#include "query/rings/dump_rings.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT64_MAX

/* What leads to a step. */
struct ring_way {
    uint64_t from; /* a step; NONE: nothing that could enter a function */
    uint64_t call; /* the number of the call that it makes; NONE: it makes none */
    bool by_stub;  /* an import stub came after it */
};

struct ring_pushed {
    uint64_t address; /* returned to; 0: the handler's way back, any */
    uint64_t call;    /* the number of the last one entered in this frame; NONE: none */
    bool is_signal;   /* the interrupted place, with what led on from there */
    struct ring_way way;
};

/* After a call: for longjmp. */
struct call_site {
    uint64_t address;
    size_t depth; /* before the call */
};

#define SITES 4096u /* a power of two */

struct ring_call_walk {
    struct tbd_rings *ring;
    struct tbd_rings_thread *thread;
    const struct tbd_rings_step *steps;
    struct ring_pushed *stack; /* owned */
    size_t depth, capacity;
    uint64_t *
        under; /* owned: what was returned to when the stack was empty, in order; 0: a handler ran instead, nobody knows */
    size_t under_count, under_capacity;
    struct tbd_rings_call *calls; /* owned */
    size_t call_count, call_capacity;
    uint64_t base; /* the call entered last in the frame that was there before the ring's; NONE */
    struct ring_way way;
    struct call_site sites[SITES];
    bool is_short; /* of memory */
};

static void *grow(void *array, size_t *capacity, size_t size, bool *is_short)
{
    size_t wanted = *capacity != 0 ? *capacity * 2 : 256;
    void *grown = realloc(array, wanted * size);

    if (grown == NULL) {
        *is_short = true;
        return array;
    }
    *capacity = wanted;
    return grown;
}

static void push(struct ring_call_walk *w, struct ring_pushed entry)
{
    if (w->depth == w->capacity)
        w->stack = grow(w->stack, &w->capacity, sizeof(*w->stack), &w->is_short);
    if (w->depth < w->capacity)
        w->stack[w->depth++] = entry;
}

/* The call, and those that jumped to it, end with their frame. */
static void end_calls(struct ring_call_walk *w, uint64_t call, uint64_t at, bool was_left)
{
    for (; call != NONE; call = w->calls[call].before) {
        w->calls[call].until = at;
        w->calls[call].was_left = was_left;
    }
}

static void leave_down_to(struct ring_call_walk *w, size_t depth, uint64_t at)
{
    while (w->depth > depth)
        end_calls(w, w->stack[--w->depth].call, at, true);
}

static struct call_site *site_of(struct ring_call_walk *w, uint64_t address)
{
    return &w->sites[(address ^ address >> 12) & (SITES - 1)];
}

/* Its number; NONE without memory. */
static uint64_t add_call(struct ring_call_walk *w, uint64_t from, uint64_t entered, uint64_t before)
{
    if (w->call_count == w->call_capacity)
        w->calls = grow(w->calls, &w->call_capacity, sizeof(*w->calls), &w->is_short);
    if (w->call_count == w->call_capacity)
        return NONE;
    w->calls[w->call_count] = (struct tbd_rings_call){ .from = from,
                                                       .entered = entered,
                                                       .until = NONE,
                                                       .jumped = NONE,
                                                       .before = before,
                                                       .depth = (uint32_t)w->depth };
    return w->call_count++;
}

static void begin_call(struct ring_call_walk *w, uint64_t at, uint64_t back)
{
    uint64_t call = add_call(w, at, NONE, NONE);

    *site_of(w, back) = (struct call_site){ back, w->depth };
    push(w, (struct ring_pushed){ .address = back, .call = call });
    w->way = (struct ring_way){ .from = at, .call = call };
}

/* ---- functions that are entered ---- */

/* The last one entered in the frame that runs. */
static uint64_t *call_here(struct ring_call_walk *w)
{
    return w->depth != 0 ? &w->stack[w->depth - 1].call : &w->base;
}

static void enter_by_jump(struct ring_call_walk *w, const struct ring_way *way, uint64_t at)
{
    uint64_t *here = call_here(w);
    uint64_t call = add_call(w, way->from, at, *here);

    if (call == NONE)
        return;
    w->calls[call].by_stub = way->by_stub;
    if (*here != NONE)
        w->calls[*here].jumped = way->from;
    *here = call;
}

/* Is the step's block part of a stub?  The stub's own jump is an indirect one; a direct one leads to what calls the binder. */
static bool is_stub(const struct ring_call_walk *w, uint64_t at)
{
    return tbd_rings_begins(w->ring, w->steps[at].block) == TBD_RINGS_BEGINS_STUB ||
           (w->way.by_stub && at != 0 &&
            w->ring->blocks[w->steps[at - 1].block].end == TBD_RINGS_JUMPS);
}

static bool leads_to_function(const struct ring_call_walk *w, const struct ring_way *way,
                              uint64_t at)
{
    uint32_t block = w->steps[at].block;

    return tbd_rings_begins(w->ring, block) == TBD_RINGS_BEGINS_FUNCTION &&
           (way->by_stub || !tbd_rings_is_inside(w->ring, w->steps[way->from].block, block));
}

/* The way leads to the binder: what was called, or jumped to, is entered when it is done. */
static void begin_binding(struct ring_call_walk *w, const struct ring_way *way)
{
    if (way->call == NONE)
        enter_by_jump(w, way, NONE);
    if (*call_here(w) != NONE)
        w->calls[*call_here(w)].is_bound = true;
}

static bool end_binding(struct ring_call_walk *w, uint64_t at)
{
    uint64_t here = *call_here(w);

    if (here == NONE || !w->calls[here].is_bound)
        return false;
    w->calls[here].entered = at;
    w->calls[here].is_bound = false;
    return true;
}

/* A step begins; what led to it has entered a function, an import stub, or neither. */
static void arrive(struct ring_call_walk *w, uint64_t at)
{
    struct ring_way way = w->way;

    if (way.from == NONE || (w->steps[at].flags & TBD_RINGS_HANDLER) != 0)
        return;
    if (is_stub(w, at)) {
        w->way.by_stub = true;
        return;
    }
    w->way.from = NONE;
    if (way.by_stub && tbd_rings_begins(w->ring, w->steps[at].block) == TBD_RINGS_BEGINS_BINDER)
        begin_binding(w, &way);
    else if (way.call != NONE)
        w->calls[way.call].entered = at;
    else if (leads_to_function(w, &way, at) && !end_binding(w, at))
        enter_by_jump(w, &way, at);
}

/* The step is at its end, where it may lead to a function.  A stub's jump is part of what led to the stub. */
static void leave(struct ring_call_walk *w, uint64_t at)
{
    if (w->way.from == NONE && tbd_rings_leads_on(w->ring, w->steps[at].block))
        w->way = (struct ring_way){ .from = at, .call = NONE };
}

/* A handler interrupts what goes on at `next`. */
static void begin_handler(struct ring_call_walk *w, uint64_t at, uint64_t next)
{
    uint64_t call = NONE;

    push(w, (struct ring_pushed){ next, NONE, true, w->way });
    w->way.from = NONE;
    if (tbd_rings_begins(w->ring, w->steps[at + 1].block) == TBD_RINGS_BEGINS_FUNCTION)
        call = add_call(w, at, at + 1, NONE);
    push(w, (struct ring_pushed){ .address = 0, .call = call });
}

/* ---- how frames end ---- */

static void return_under(struct ring_call_walk *w, uint64_t next)
{
    if (w->under_count == w->under_capacity)
        w->under = grow(w->under, &w->under_capacity, sizeof(*w->under), &w->is_short);
    if (w->under_count < w->under_capacity)
        w->under[w->under_count++] = next;
}

/* How many frames are left after a return to `next`; SIZE_MAX: it is to none of them. */
static size_t frame_of_return(struct ring_call_walk *w, uint64_t next)
{
    for (size_t i = w->depth; i-- > 0;)
        if (w->stack[i].address == next || w->stack[i].address == 0)
            return i;
    return SIZE_MAX;
}

/* An exception goes on in a frame's function, but not after its call. */
static size_t frame_of_function(struct ring_call_walk *w, uint64_t next)
{
    uint64_t function = tbd_rings_place_at(w->ring, next).function_start;

    for (size_t i = w->depth; function != 0 && i-- > 0;)
        if (w->stack[i].address != 0 &&
            tbd_rings_place_at(w->ring, w->stack[i].address - 1).function_start == function)
            return i;
    return SIZE_MAX;
}

static void take_return(struct ring_call_walk *w, uint64_t at, uint64_t next)
{
    size_t depth = frame_of_return(w, next);
    bool is_plain = depth != SIZE_MAX;

    if (!is_plain)
        depth = frame_of_function(w, next);
    if (depth == SIZE_MAX) {
        leave_down_to(w, 0, at);
        end_calls(w, w->base, at, false);
        w->base = NONE;
        return_under(w, next);
        return;
    }
    leave_down_to(w, depth + 1, at);
    end_calls(w, w->stack[--w->depth].call, at, !is_plain);
}

/* Does the step jump into the middle of another function? */
static bool jumps_into(struct ring_call_walk *w, uint64_t at)
{
    const struct tbd_rings_place *place =
        tbd_rings_place(w->ring, w->steps[at].block, w->steps[at].insns - 1u);
    uint64_t from = place != NULL ? place->function_start : 0;

    place = tbd_rings_place(w->ring, w->steps[at + 1].block, 0);
    return place != NULL && place->function_start != 0 && place->function_start != from &&
           place->function_start != place->address;
}

static void take_jump(struct ring_call_walk *w, uint64_t at, uint64_t next)
{
    const struct call_site *site = site_of(w, next);
    size_t depth;

    if (site->address == next && site->depth < w->depth) {
        leave_down_to(w, site->depth, at);
        return;
    }
    depth = jumps_into(w, at) ? frame_of_function(w, next) : SIZE_MAX;
    if (depth != SIZE_MAX)
        leave_down_to(w, depth, at);
}

static void take_sigreturn(struct ring_call_walk *w, uint64_t at)
{
    for (size_t i = w->depth; i-- > 0;) {
        if (!w->stack[i].is_signal)
            continue;
        w->way = w->stack[i].way;
        leave_down_to(w, i, at);
        return;
    }
}

/* Where the thread would go on after the step if no handler ran; 0: nobody knows. */
static uint64_t next_without_handler(const struct ring_call_walk *w, uint64_t at)
{
    const struct tbd_rings_step *step = &w->steps[at];
    const struct tbd_rings_block *block = &w->ring->blocks[step->block];
    uint64_t resumes = tbd_rings_resumes(w->thread, at);

    if (resumes != 0)
        return resumes;

    if ((step->flags & TBD_RINGS_CUT) != 0)
        return step->insns < block->insn_count ? block->insns[step->insns].pc : block->after;
    switch (block->end) {
    case TBD_RINGS_GOES_ON: return block->after;
    case TBD_RINGS_JUMPS:
    case TBD_RINGS_CALLS: return block->target;
    case TBD_RINGS_RETURNS: return w->depth != 0 ? w->stack[w->depth - 1].address : 0;
    case TBD_RINGS_SIGRETURN:
        for (size_t i = w->depth; i-- > 0;)
            if (w->stack[i].is_signal)
                return w->stack[i].address;
        return 0;
    case TBD_RINGS_BRANCHES:
    case TBD_RINGS_JUMPS_ANYWHERE:
    case TBD_RINGS_CALLS_ANYWHERE:
    case TBD_RINGS_FAULTS:
    case TBD_RINGS_UNKNOWN: break;
    }
    return 0;
}

/* From the end of a step to the beginning of the next. */
static void take_step(struct ring_call_walk *w, uint64_t at)
{
    const struct tbd_rings_step *step = &w->steps[at];
    const struct tbd_rings_block *block = &w->ring->blocks[step->block];
    bool is_cut = (step->flags & TBD_RINGS_CUT) != 0;
    bool has_handler = (step[1].flags & TBD_RINGS_HANDLER) != 0;
    uint64_t next =
        has_handler ? next_without_handler(w, at) : w->ring->dump.blocks[step[1].block].start;

    arrive(w, at);
    if (is_cut)
        w->way.from = NONE;
    else
        leave(w, at);
    if (!is_cut && (block->end == TBD_RINGS_CALLS || block->end == TBD_RINGS_CALLS_ANYWHERE))
        begin_call(w, at, block->after);
    else if (!is_cut && block->end == TBD_RINGS_RETURNS)
        take_return(w, at, next);
    else if (!is_cut && block->end == TBD_RINGS_JUMPS_ANYWHERE && next != 0)
        take_jump(w, at, next);
    else if (!is_cut && block->end == TBD_RINGS_SIGRETURN)
        take_sigreturn(w, at);
    if (has_handler)
        begin_handler(w, at, next);
}

static bool start_walk(struct ring_call_walk **out, struct tbd_rings *ring,
                       struct tbd_rings_thread *thread)
{
    struct ring_call_walk *w = calloc(1, sizeof(*w));

    *out = w;
    if (w == NULL)
        return false;
    w->ring = ring;
    w->thread = thread;
    w->steps = tbd_rings_steps(ring, thread);
    w->base = w->way.from = NONE;
    return w->steps != NULL;
}

static void end_of_walk(struct ring_call_walk *w)
{
    if (w == NULL)
        return;
    free(w->stack);
    free(w->under);
    free(w->calls);
    free(w);
}

enum tbd_status tbd_rings_calls(struct tbd_rings *ring, struct tbd_rings_thread *thread,
                                struct tbd_rings_call **out, size_t *out_count)
{
    struct ring_call_walk *w;
    bool is_fine = start_walk(&w, ring, thread);

    for (uint64_t i = 0; is_fine && i + 1 < thread->count; i++)
        take_step(w, i);
    if (is_fine && thread->count != 0)
        arrive(w, thread->count - 1);
    is_fine = is_fine && !w->is_short;
    *out = is_fine ? w->calls : NULL;
    *out_count = is_fine ? w->call_count : 0;
    if (is_fine)
        w->calls = NULL;
    end_of_walk(w);
    return is_fine ? TBD_OK : TBD_NOMEM;
}

/* ---- the stack at a position ---- */

/* Are the ring's frames those at the end's top?  An unknown way back is any. */
static bool matches(const struct ring_call_walk *w, const struct tbd_rings_frame *last,
                    size_t count)
{
    if (w->depth + 1 > count)
        return false;
    for (size_t i = 0; i < w->depth; i++) {
        uint64_t address = w->stack[w->depth - 1 - i].address;

        if (address != 0 && address != last[1 + i].pc)
            return false;
    }
    return true;
}

static void add(struct tbd_rings_stack *out, uint64_t pc, bool is_signal)
{
    out->frames[out->count++] = (struct tbd_rings_frame){ pc, is_signal };
}

/* What is known at `at`, from the walk that stands there. */
static enum tbd_status take_pushed(const struct ring_call_walk *w, uint64_t at, size_t last_count,
                                   struct tbd_rings_stack *out)
{
    out->frames = calloc(w->depth + last_count + w->thread->count + 2, sizeof(*out->frames));
    if (out->frames == NULL)
        return TBD_NOMEM;
    add(out, w->ring->dump.blocks[w->steps[at].block].start, false);
    for (size_t i = w->depth; i-- > 0;)
        if (w->stack[i].address != 0)
            add(out, w->stack[i].address, w->stack[i].is_signal);
    return TBD_OK;
}

enum tbd_status tbd_rings_stack(struct tbd_rings *ring, struct tbd_rings_thread *thread,
                                uint64_t at, const struct tbd_rings_frame *last, size_t last_count,
                                struct tbd_rings_stack *out)
{
    struct ring_call_walk *w;
    enum tbd_status status = start_walk(&w, ring, thread) ? TBD_OK : TBD_NOMEM;
    size_t under = 0;

    *out = (struct tbd_rings_stack){ .frames = NULL };
    for (uint64_t i = 0; status == TBD_OK && i < thread->count; i++) {
        if (i == at) {
            status = take_pushed(w, at, last_count, out);
            under = w->under_count;
        }
        if (i + 1 < thread->count)
            take_step(w, i);
    }
    if (status == TBD_OK && w->is_short)
        status = TBD_NOMEM;
    if (status == TBD_OK) {
        for (size_t i = under; i < w->under_count; i++)
            if (w->under[i] != 0)
                add(out, w->under[i], false);
        out->is_whole = last != NULL && matches(w, last, last_count);
        for (size_t i = w->depth + 1; out->is_whole && i < last_count; i++)
            add(out, last[i].pc, last[i].is_signal);
    }
    end_of_walk(w);
    if (status != TBD_OK) {
        free(out->frames);
        *out = (struct tbd_rings_stack){ .frames = NULL };
    }
    return status;
}
