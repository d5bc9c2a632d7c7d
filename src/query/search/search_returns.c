// SPDX-License-Identifier: MIT
/* search_returns.c - of all returns in a window, the few that may end the frame of an entry
 *
 * An entry of this window ends at the first return at its slot or above it.  Which entries of earlier
 * windows still live is not known here, so every return that might be the first at or above one of
 * their slots is wanted:
 *   - it leaves a frame whose call was made before the window, or is not known
 *   - its stack pointer is the highest of the thread's returns in this window so far
 * Calls tell as much as returns: they overwrite slots of frames that are gone.
 * With own_returns the returns are those of the function that is asked about, and of others to which it jumps;
 * others that jump to it are called, too.
 * A thread may have several stacks (coroutines, sigaltstack): a frame that seems to be left, because a
 * return of another stack is above it, may still return, at its own slot. */
#include "query/search/search_private.h"

#include "base/array.h"
#include "query/session/main_stack.h"

#include <stdlib.h>
#include <string.h>

struct slots {
    uint64_t *all; /* owned */
    size_t count, capacity;
};

struct tbd_thread_returns {
    uint32_t thread;
    uint64_t highest;
    struct slots open;   /* of entries; descending */
    struct slots passed; /* of frames that seem to be left */
    struct slots others; /* own_returns: of calls of other functions; descending */
    struct tbd_event
        stub; /* own_returns: the last entry of an import stub; from == 0: none, or its jump came */
};

static struct tbd_thread_returns *returns_of(struct tbd_search_run *run, uint32_t thread)
{
    struct tbd_search_returns *returns = &run->returns;
    struct tbd_thread_returns *own = NULL;

    for (size_t i = 0; i < returns->count; i++) {
        if (returns->threads[i].thread == thread)
            return &returns->threads[i];
    }
    if (!tbd_array_reach(&returns->threads, returns->count, &returns->capacity,
                         sizeof(*returns->threads))) {
        run->status = TBD_NOMEM;
        return NULL;
    }
    own = &returns->threads[returns->count++];
    own->thread = thread;
    own->highest = 0;
    own->open.count = own->passed.count = own->others.count = 0;
    own->stub.from = 0;
    return own;
}

static void add(struct tbd_search_run *run, struct slots *slots, uint64_t slot)
{
    if (!tbd_array_grow(&slots->all, slots->count, &slots->capacity, sizeof(*slots->all)))
        run->status = TBD_NOMEM;
    else
        slots->all[slots->count++] = slot;
}

static bool is_gone(const struct tbd_search_run *run, uint64_t slot, uint64_t sp)
{
    return slot == sp ||
           (tbd_is_on_main_stack(run->session, slot) && tbd_is_on_main_stack(run->session, sp));
}

/* Something happened at `sp`: entries below seem to be left.  Is there one, or one at it? */
static bool pass(struct tbd_search_run *run, struct tbd_thread_returns *own, uint64_t sp)
{
    size_t before = own->open.count;

    while (own->open.count != 0 && own->open.all[own->open.count - 1] <= sp) {
        uint64_t slot = own->open.all[--own->open.count];

        if (!is_gone(run, slot, sp))
            add(run, &own->passed, slot);
    }
    return own->open.count != before;
}

/* The same for a call, which says nothing about frames of other stacks. */
static bool overwrite(const struct tbd_search_run *run, struct tbd_thread_returns *own, uint64_t sp)
{
    size_t before = own->open.count;

    while (own->open.count != 0 && own->open.all[own->open.count - 1] <= sp &&
           is_gone(run, own->open.all[own->open.count - 1], sp))
        own->open.count--;
    return own->open.count != before;
}

/* Has a frame that seemed to be left its slot here? */
static bool comes_back(struct tbd_thread_returns *own, uint64_t sp)
{
    size_t kept = 0, before = own->passed.count;

    for (size_t i = 0; i < before; i++) {
        if (own->passed.all[i] != sp)
            own->passed.all[kept++] = own->passed.all[i];
    }
    own->passed.count = kept;
    return kept != before;
}

static bool is_in_function(const void *context, uint64_t pc)
{
    return tbd_expr_in_ranges(context, pc);
}

void tbd_search_note_entry(struct tbd_search_run *run, struct tbd_event *enter)
{
    struct tbd_thread_returns *own = returns_of(run, enter->thread);

    enter->number = tbd_callers_marked(&run->callers, is_in_function, &run->where->names[0]);
    if (own == NULL)
        return;
    (void)pass(run, own, enter->sp);
    (void)comes_back(own, enter->sp);
    add(run, &own->open, enter->sp);
}

bool tbd_search_wants_return(struct tbd_search_run *run, const struct tbd_event *exit)
{
    struct tbd_thread_returns *own = returns_of(run, exit->thread);
    bool is_of_earlier = (exit->flags & TBD_EVENT_HAS_CALL) == 0 || exit->began == 0;
    bool is_call = (exit->flags & TBD_EVENT_OVERWRITES) != 0;
    bool is_highest, ends;

    if (own == NULL)
        return true;
    is_highest = exit->sp > own->highest;
    if (is_highest)
        own->highest = exit->sp;
    ends = is_call ? overwrite(run, own, exit->sp) : pass(run, own, exit->sp);
    return comes_back(own, exit->sp) || ends || is_of_earlier || is_highest;
}

/* ---- own_returns ---- */

/* Something is at `sp`: calls below it have ended somehow.  Were there some of the function? */
static bool pass_all(struct tbd_search_run *run, struct tbd_thread_returns *own, uint64_t sp)
{
    while (own->others.count != 0 && own->others.all[own->others.count - 1] < sp)
        own->others.count--;
    return pass(run, own, sp);
}

/* A call of another function is at `sp`, and ends. */
static bool take_other(struct tbd_thread_returns *own, uint64_t sp)
{
    if (own->others.count == 0 || own->others.all[own->others.count - 1] != sp)
        return false;
    own->others.count--;
    return true;
}

static bool is_highest(struct tbd_thread_returns *own, uint64_t sp)
{
    if (sp <= own->highest)
        return false;
    own->highest = sp;
    return true;
}

/* Is it a jump of the loader, which binds a stub's function when it is first called? */
static bool is_of_loader(const struct tbd_search_run *run, uint64_t from)
{
    struct tbd_symbol symbol;

    return tbd_symbols_at(run->session->symbols, run->window->index, from, &symbol) &&
           strncmp(symbol.module, "ld-", strlen("ld-")) == 0;
}

void tbd_search_take_stub(struct tbd_search_run *run, struct tbd_event *enter)
{
    struct tbd_thread_returns *own = returns_of(run, enter->thread);
    bool is_next;

    if (own == NULL || own->stub.from == 0 || own->stub.sp != enter->sp)
        return;
    is_next = own->stub.position.time + 1 == enter->position.time;
    if (is_next || is_of_loader(run, enter->from))
        enter->from = enter->called_at = own->stub.from;
    own->stub.from = 0;
}

void tbd_search_note_own_entry(struct tbd_search_run *run, const struct tbd_event *enter)
{
    struct tbd_thread_returns *own;

    if (run->plan.tails.others == 0)
        return;
    own = returns_of(run, enter->thread);
    if (own == NULL)
        return;
    (void)pass_all(run, own, enter->sp);
    (void)take_other(own, enter->sp);
    add(run, &own->open, enter->sp);
}

/* False without memory. */
static bool note_stub(struct tbd_search_run *run, const struct tbd_event *enter)
{
    struct tbd_thread_returns *own = returns_of(run, enter->thread);

    if (own != NULL)
        own->stub = *enter;
    if (own != NULL && (enter->flags & TBD_EVENT_BY_JUMP) != 0)
        own->stub.from = 0;
    return own != NULL;
}

/* Another function is entered.  After a tail call of one of these it goes on in the frame that is there. */
static bool wants_own_entry(struct tbd_search_run *run, struct tbd_event *event)
{
    const struct tbd_tails *tails = &run->plan.tails;
    struct tbd_thread_returns *own;
    bool ends;

    if ((run->plan.blocks[event->block] & TBD_PLAN_STUB) != 0 && !note_stub(run, event))
        return false;
    if (!tbd_tails_begin(tails, event->pc) ||
        ((event->flags & TBD_EVENT_BY_JUMP) != 0 && tbd_tails_return(tails, event->from)))
        return false;
    own = returns_of(run, event->thread);
    if (own == NULL)
        return false;
    ends = pass_all(run, own, event->sp);
    (void)take_other(own, event->sp);
    add(run, &own->others, event->sp);
    event->type = TBD_EVENT_FUNC_EXIT;
    event->flags |= TBD_EVENT_OVERWRITES | TBD_EVENT_ELSEWHERE;
    return is_highest(own, event->sp) || ends;
}

/* Its call may be in an earlier window, if nothing was as high on the stack since. */
static bool wants_own_return(struct tbd_search_run *run, struct tbd_event *event)
{
    bool is_own = tbd_expr_in_ranges(&run->where->names[0], event->pc);
    struct tbd_thread_returns *own;
    bool is_new, ends;

    if (run->plan.tails.others == 0)
        return is_own;
    own = returns_of(run, event->thread);
    if (own == NULL)
        return false;
    is_new = is_highest(own, event->sp);
    ends = pass_all(run, own, event->sp);
    event->flags |= is_own ? 0 : TBD_EVENT_ELSEWHERE;
    if (take_other(own, event->sp)) {
        event->flags |= TBD_EVENT_OF_OTHER;
        return ends || is_new;
    }
    event->flags |= is_new && !ends ? TBD_EVENT_OF_OTHER : 0;
    return is_own || is_new || ends;
}

bool tbd_search_wants_own(struct tbd_search_run *run, struct tbd_event *event)
{
    return event->type == TBD_EVENT_FUNC_ENTER ? wants_own_entry(run, event)
                                               : wants_own_return(run, event);
}

void tbd_search_free_returns(struct tbd_search_run *run)
{
    for (size_t i = 0; i < run->returns.capacity; i++) {
        free(run->returns.threads[i].open.all);
        free(run->returns.threads[i].passed.all);
        free(run->returns.threads[i].others.all);
    }
    free(run->returns.threads);
    run->returns = (struct tbd_search_returns){ 0 };
}
