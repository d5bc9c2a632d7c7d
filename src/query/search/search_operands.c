// SPDX-License-Identifier: MIT
/* search_operands.c - stack pointer and arguments of functions that a jump enters
 *
 * A jump keeps no operands in the trace.  A first walk over the window lists its entries by jumps that may be wanted; one
 * replay, with notes at them or with stops, gives the registers there.  Later walks find them by position.
 * With own_returns nobody knows the caller: the return address, which lies at the stack pointer, tells. */
#include "query/search/search_private.h"

#include "base/binary_search.h"
#include "base/layout.h"
#include "format/files/large_buffers.h"
#include "format/pages/pages.h"

#include <stdlib.h>
#include <string.h>

#define OPERANDS                                                                                   \
    (1u << TBD_RSP | 1u << TBD_RDI | 1u << TBD_RSI | 1u << TBD_RDX | 1u << TBD_RCX |               \
     1u << TBD_R8 | 1u << TBD_R9)
#define STOPS_MOST  8192u /* of one replay */
#define STACK_BYTES 256u  /* of a stop: from the red zone below the stack pointer on */
/* Entries of a window from which on its whole replay, some 50 ms, takes less than a stop of some 10 us at each. */
#define NOTES_LEAST 256u

bool tbd_search_wants_operands(const struct tbd_search_run *run)
{
    const struct tbd_question *question = run->question;
    bool shows_them = run->search->each != NULL && !question->skips_operands;

    return run->plan.has_jumped && (shows_them || question->own_returns ||
                                    (run->uses & (TBD_USES_OPERANDS | TBD_USES_TYPES)) != 0);
}

/* Without its operands, and without the stack. */
static bool may_be_wanted(struct tbd_search_run *run, const struct tbd_event *event)
{
    const uint32_t harmless = TBD_USES_NAMES | TBD_USES_OPERANDS | TBD_USES_REGS;
    struct tbd_bad_events before = run->env.bad;
    enum tbd_verdict verdict;

    if (run->where == NULL || (run->uses & ~harmless) != 0 || run->question->own_returns)
        return true;
    run->here = run->where;
    run->env.regs = NULL;
    verdict = tbd_search_judge(run, event);
    run->env.bad = before;
    return verdict != TBD_VERDICT_MISS;
}

static bool lacks_caller(const struct tbd_search_run *run, const struct tbd_event *event)
{
    return run->question->own_returns && (event->flags & TBD_EVENT_BY_JUMP) != 0 &&
           event->called_at == 0;
}

static bool lacks_something(const struct tbd_search_run *run, const struct tbd_event *event)
{
    return event->type == TBD_EVENT_FUNC_ENTER &&
           ((event->flags & TBD_EVENT_BARE) != 0 || lacks_caller(run, event));
}

bool tbd_search_note_bare(void *context, struct tbd_event *event)
{
    struct tbd_search_run *run = context;
    struct tbd_search_operands *operands = &run->operands;

    if (!lacks_something(run, event) || !may_be_wanted(run, event))
        return true;
    if (!tbd_large_array_grow(&operands->all, operands->count, &operands->capacity,
                              sizeof(*operands->all))) {
        run->status = TBD_NOMEM;
        return false;
    }
    operands->all[operands->count++] = (struct tbd_entry_operands){
        .position = event->position, .pc = event->pc, .thread = event->thread, .flags = event->flags
    };
    return true;
}

/* A jump in another window is not known: the row says where the call was. */
static void take_caller(struct tbd_event *event, uint64_t called_at)
{
    event->called_at = called_at;
    if (event->from == 0)
        event->from = called_at;
}

/* Walks go forward, so it is mostly the next one. */
static const struct tbd_entry_operands *find(struct tbd_search_operands *operands,
                                             struct tbd_position position)
{
    size_t i = operands->next;

    if (i >= operands->count || tbd_position_compare(operands->all[i].position, position) != 0)
        i = TBD_COUNT_BEFORE(k, operands->count,
                             tbd_position_compare(operands->all[k].position, position) < 0);
    operands->next = i + 1;
    return i < operands->count && tbd_position_compare(operands->all[i].position, position) == 0
               ? &operands->all[i]
               : NULL;
}

void tbd_search_take_operands(struct tbd_search_run *run, struct tbd_event *event)
{
    const struct tbd_entry_operands *own;

    if (run->operands.count == 0 || !lacks_something(run, event))
        return;
    own = find(&run->operands, event->position);
    if (own == NULL || !own->is_known)
        return;
    event->sp = own->sp;
    memcpy(event->args, own->args, sizeof(event->args));
    event->flags = (event->flags & ~TBD_EVENT_BARE) | TBD_EVENT_HAS_SP;
    if (run->question->own_returns)
        take_caller(event, own->called_at);
}

/* `back`: the return address, as far as it is known. */
static void set_operands(struct tbd_entry_operands *own, const struct tbd_regs *regs, uint64_t back)
{
    struct tbd_event entry = { 0 };

    tbd_event_take_operands(&entry, regs);
    own->sp = entry.sp;
    memcpy(own->args, entry.args, sizeof(own->args));
    own->called_at = back != 0 ? back - 1 : 0;
    own->is_known = true;
}

/* ---- many: notes ---- */

static enum tbd_status note_all(struct tbd_search_run *run)
{
    struct tbd_search_operands *operands = &run->operands;
    struct tbd_session *session = run->session;
    uint64_t registers = OPERANDS | (run->question->own_returns ? TBD_NOTE_TOP : 0);
    struct tbd_note_sites sites = { 0 };
    struct tbd_notes notes = { 0 };
    struct tbd_window *window;
    enum tbd_status status = TBD_OK;

    for (size_t i = 0; i < operands->count && status == TBD_OK; i++) {
        if (!tbd_note_sites_add(&sites, operands->all[i].pc, registers))
            status = TBD_NOMEM;
    }
    tbd_note_sites_sort(&sites);
    if (status == TBD_OK && tbd_replay_notes(session->replayer, session->worker, run->window,
                                             sites.table.entries, sites.table.count, &window,
                                             &session->divergence, &session->why) == TBD_OK) {
        session->stats.noted++;
        tbd_notes_take(&notes, window);
        for (size_t i = 0; i < operands->count; i++) {
            struct tbd_entry_operands *own = &operands->all[i];
            const struct tbd_noted *noted = tbd_notes_at(
                &notes, &(struct tbd_event){
                            .position = own->position, .pc = own->pc, .flags = own->flags });

            if (noted != NULL)
                set_operands(own, &noted->regs, noted->top);
        }
        tbd_notes_free(&notes);
    }
    tbd_note_sites_free(&sites);
    return status;
}

/* ---- few: stops ---- */

/* What is needed for the stops of one replay. */
struct stops {
    struct tbd_reg_state states[STOPS_MOST];
    uint8_t stacks[STOPS_MOST][STACK_BYTES];
    size_t indices[STOPS_MOST];
};

/* A stop at a window's start, or end, needs no replay, and has no stack. */
static uint64_t read_top(struct tbd_search_run *run, const struct tbd_reg_state *state)
{
    struct tbd_trace *trace = run->session->trace;
    uint32_t window = tbd_trace_window_of(trace, state->position.time);
    uint64_t sp = state->regs.gpr[TBD_RSP], in_page = sp % TBD_PAGE_SIZE, top = 0;
    uint8_t page[TBD_PAGE_SIZE];

    if (window == UINT32_MAX || in_page > TBD_PAGE_SIZE - sizeof(top) ||
        tbd_trace_window(trace, window)->first_time != state->position.time ||
        tbd_trace_page_at_start(trace, window, sp - in_page, page) != TBD_OK)
        return 0;
    memcpy(&top, page + in_page, sizeof(top));
    return top;
}

/* What lies at the stack pointer; 0: not known. */
static uint64_t top_of(struct tbd_search_run *run, const struct tbd_reg_state *state)
{
    uint64_t sp = state->regs.gpr[TBD_RSP], top = 0;

    if (!run->question->own_returns)
        return 0;
    if (state->stack_bytes == 0)
        return read_top(run, state);
    if (sp - state->stack_start <= state->stack_bytes - sizeof(top))
        memcpy(&top, state->stack + (sp - state->stack_start), sizeof(top));
    return top;
}

/* Stops at entries from *from on that are not known. */
static enum tbd_status stop_at(struct tbd_search_run *run, size_t *from, struct stops *stops)
{
    struct tbd_search_operands *operands = &run->operands;
    enum tbd_status status = TBD_OK;
    size_t count = 0;

    for (; *from < operands->count && count < STOPS_MOST; ++*from) {
        const struct tbd_entry_operands *own = &operands->all[*from];

        if (own->is_known)
            continue;
        stops->states[count] =
            (struct tbd_reg_state){ .position = own->position, .thread = own->thread };
        if (run->question->own_returns) {
            stops->states[count].stack = stops->stacks[count];
            stops->states[count].stack_capacity = STACK_BYTES;
        }
        stops->indices[count++] = *from;
    }
    run->session->stats.replayed += count;
    if (count != 0)
        status = tbd_session_replay_regs(run->session, run->window->index, stops->states, count);
    for (size_t i = 0; i < count && status == TBD_OK; i++)
        set_operands(&operands->all[stops->indices[i]], &stops->states[i].regs,
                     top_of(run, &stops->states[i]));
    return status;
}

static enum tbd_status stop_at_all(struct tbd_search_run *run)
{
    struct stops *stops = calloc(1, sizeof(*stops));
    enum tbd_status status = stops == NULL ? TBD_NOMEM : TBD_OK;
    size_t from = 0;

    while (status == TBD_OK && from < run->operands.count)
        status = stop_at(run, &from, stops);
    free(stops);
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
