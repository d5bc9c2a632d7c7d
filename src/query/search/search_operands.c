// SPDX-License-Identifier: MIT
/* search_operands.c - stack pointer and arguments of functions that a jump enters
 *
 * A jump keeps no operands in the trace.  A first walk over the window lists its entries by jumps that may be wanted; one
 * replay, with notes at them or with stops, gives the registers there.  Later walks find them by position. */
#include "query/search/search_private.h"

#include "base/array.h"
#include "base/binary_search.h"

#include <stdlib.h>

#define OPERANDS                                                                                   \
    (1u << TBD_RSP | 1u << TBD_RDI | 1u << TBD_RSI | 1u << TBD_RDX | 1u << TBD_RCX |               \
     1u << TBD_R8 | 1u << TBD_R9)
#define STOPS_MOST 8192u /* of one replay */
/* Entries of a window from which on its whole replay, some 50 ms, takes less than a stop of some 10 us at each. */
#define NOTES_LEAST 256u

bool tbd_search_wants_operands(const struct tbd_search_run *run)
{
    const struct tbd_question *question = run->question;
    bool shows_them = run->search->each != NULL && !question->skips_operands;

    return run->plan.has_jumped && !question->own_returns &&
           (shows_them || (run->uses & (TBD_USES_OPERANDS | TBD_USES_TYPES)) != 0);
}

/* Without its operands, and without the stack. */
static bool may_be_wanted(struct tbd_search_run *run, const struct tbd_event *event)
{
    const uint32_t harmless = TBD_USES_NAMES | TBD_USES_OPERANDS | TBD_USES_REGS;
    struct tbd_search_bad before = { run->env.divisions, run->env.unmapped, run->env.optimized };
    enum tbd_verdict verdict;

    if (run->where == NULL || (run->uses & ~harmless) != 0)
        return true;
    run->here = run->where;
    run->env.regs = NULL;
    verdict = tbd_search_judge(run, event);
    run->env.divisions = before.divisions;
    run->env.unmapped = before.unmapped;
    run->env.optimized = before.optimized;
    return verdict != TBD_VERDICT_MISS;
}

bool tbd_search_note_bare(void *context, struct tbd_event *event)
{
    struct tbd_search_run *run = context;
    struct tbd_search_operands *operands = &run->operands;
    struct tbd_entry_operands *own;

    if ((event->flags & TBD_EVENT_BARE) == 0 || !may_be_wanted(run, event))
        return true;
    if (!tbd_array_grow(&operands->all, operands->count, &operands->capacity,
                        sizeof(*operands->all))) {
        run->status = TBD_NOMEM;
        return false;
    }
    own = &operands->all[operands->count++];
    *own = (struct tbd_entry_operands){ .entry = *event };
    return true;
}

void tbd_search_take_operands(const struct tbd_search_run *run, struct tbd_event *event)
{
    const struct tbd_search_operands *operands = &run->operands;
    const struct tbd_event *entry;
    size_t i;

    if ((event->flags & TBD_EVENT_BARE) == 0 || event->type != TBD_EVENT_FUNC_ENTER)
        return;
    i = TBD_COUNT_BEFORE(k, operands->count,
                         tbd_position_compare(operands->all[k].entry.position, event->position) <
                             0);
    if (i == operands->count || !operands->all[i].is_known)
        return;
    entry = &operands->all[i].entry;
    if (tbd_position_compare(entry->position, event->position) != 0)
        return;
    event->sp = entry->sp;
    memcpy(event->args, entry->args, sizeof(event->args));
    event->flags = (event->flags & ~TBD_EVENT_BARE) | TBD_EVENT_HAS_SP;
}

static void set_operands(struct tbd_entry_operands *own, const struct tbd_regs *regs)
{
    tbd_event_take_operands(&own->entry, regs);
    own->is_known = true;
}

/* ---- many: notes ---- */

static enum tbd_status note_all(struct tbd_search_run *run)
{
    struct tbd_search_operands *operands = &run->operands;
    struct tbd_session *session = run->session;
    struct tbd_note_sites sites = { 0 };
    struct tbd_notes notes = { 0 };
    struct tbd_window *window;
    enum tbd_status status = TBD_OK;

    for (size_t i = 0; i < operands->count && status == TBD_OK; i++) {
        if (!tbd_note_sites_add(&sites, operands->all[i].entry.pc, OPERANDS))
            status = TBD_NOMEM;
    }
    tbd_note_sites_sort(&sites);
    if (status == TBD_OK && tbd_replay_notes(session->replayer, session->worker, run->window,
                                             sites.table.entries, sites.table.count, &window,
                                             &session->divergence, &session->why) == TBD_OK) {
        session->stats.noted++;
        tbd_notes_take(&notes, window);
        for (size_t i = 0; i < operands->count; i++) {
            const struct tbd_noted *noted = tbd_notes_at(&notes, &operands->all[i].entry);

            if (noted != NULL)
                set_operands(&operands->all[i], &noted->regs);
        }
        tbd_notes_free(&notes);
    }
    tbd_note_sites_free(&sites);
    return status;
}

/* ---- few: stops ---- */

/* Stops at entries from *from on that are not known. */
static enum tbd_status stop_at(struct tbd_search_run *run, size_t *from,
                               struct tbd_reg_state *states, size_t *indices)
{
    struct tbd_search_operands *operands = &run->operands;
    enum tbd_status status = TBD_OK;
    size_t count = 0;

    for (; *from < operands->count && count < STOPS_MOST; ++*from) {
        const struct tbd_entry_operands *own = &operands->all[*from];

        if (own->is_known)
            continue;
        states[count] =
            (struct tbd_reg_state){ .position = own->entry.position, .thread = own->entry.thread };
        indices[count++] = *from;
    }
    run->session->stats.replayed += count;
    if (count != 0)
        status = tbd_session_replay_regs(run->session, run->window->index, states, count);
    for (size_t i = 0; i < count && status == TBD_OK; i++)
        set_operands(&operands->all[indices[i]], &states[i].regs);
    return status;
}

static enum tbd_status stop_at_all(struct tbd_search_run *run)
{
    struct tbd_reg_state *states = calloc(STOPS_MOST, sizeof(*states));
    size_t *indices = calloc(STOPS_MOST, sizeof(*indices)), from = 0;
    enum tbd_status status = states == NULL || indices == NULL ? TBD_NOMEM : TBD_OK;

    while (status == TBD_OK && from < run->operands.count)
        status = stop_at(run, &from, states, indices);
    free(states);
    free(indices);
    return status;
}

/* ---- both ---- */

enum tbd_status tbd_search_find_operands(struct tbd_search_run *run)
{
    const struct tbd_window *window = run->window;
    size_t count = run->operands.count;
    enum tbd_status status = tbd_session_replayer(run->session);

    if (status == TBD_OK && count >= NOTES_LEAST && window->complete)
        status = note_all(run);
    return status == TBD_OK ? stop_at_all(run) : status;
}

enum tbd_status tbd_search_find_entry(struct tbd_search_run *run, struct tbd_event *event)
{
    uint32_t window = tbd_trace_window_of(run->session->trace, event->position.time);
    struct tbd_reg_state state = { .position = event->position, .thread = event->thread };
    enum tbd_status status;

    if (event->type != TBD_EVENT_FUNC_ENTER || (event->flags & TBD_EVENT_BARE) == 0 ||
        window == UINT32_MAX)
        return TBD_OK;
    status = tbd_session_replayer(run->session);
    if (status == TBD_OK)
        status = tbd_session_replay_regs(run->session, window, &state, 1);
    if (status == TBD_OK)
        tbd_event_take_operands(event, &state.regs);
    return status;
}
