// SPDX-License-Identifier: MIT
/* call_registers.c - see call_registers.h */
#include "query/calls/call_registers.h"

#include "query/text/user_interrupt.h"

#include <stdlib.h>

#define BATCH 2048u /* positions of one window that one replay stops at */

struct wanted_registers {
    struct tbd_position position;
    size_t index; /* in tbd_call_registers.all */
};

struct fetch {
    struct tbd_session *session;
    struct wanted_registers *wanted; /* owned; ascending */
    size_t count;
    struct tbd_reg_state *states; /* owned: BATCH of them */
    struct tbd_call_registers *out;
};

static int compare_wanted(const void *left, const void *right)
{
    const struct wanted_registers *a = left, *b = right;

    return tbd_position_compare(a->position, b->position);
}

/* What one function needs, its other calls need too. */
static void want(struct fetch *f, struct tbd_call_shapes *shapes, const struct tbd_call_list *list)
{
    uint64_t pc = 0;
    bool entry = false, result = false;

    for (size_t i = 0; i < list->count; i++) {
        const struct tbd_listed_call *call = &list->all[i];

        if (call->enter.pc != pc) {
            pc = call->enter.pc;
            entry = tbd_output_needs_entry(shapes, &call->enter);
            result = tbd_output_needs_return(shapes, &call->enter);
        }
        if (entry)
            f->wanted[f->count++] = (struct wanted_registers){ call->enter.position, 2 * i };
        if (result && call->end == TBD_FRAME_RETURNS)
            f->wanted[f->count++] = (struct wanted_registers){ call->exit, 2 * i + 1 };
    }
    qsort(f->wanted, f->count, sizeof(*f->wanted), compare_wanted);
}

/* The positions [first, first + count), which are in one window.  Without them values are not known. */
static void fetch_batch(struct fetch *f, uint32_t window, size_t first, size_t count)
{
    for (size_t i = 0; i < count; i++)
        f->states[i] = (struct tbd_reg_state){ .position = f->wanted[first + i].position };
    if (tbd_session_replay_regs(f->session, window, f->states, count) != TBD_OK)
        return;
    f->session->stats.replayed += count;
    for (size_t i = 0; i < count; i++)
        tbd_output_registers_take(&f->states[i], &f->out->all[f->wanted[first + i].index]);
}

static void fetch_all(struct fetch *f)
{
    struct tbd_trace *trace = f->session->trace;

    for (size_t i = 0, next; i < f->count && !tbd_is_interrupted(); i = next) {
        uint32_t window = tbd_trace_window_of(trace, f->wanted[i].position.time);

        for (next = i + 1; next < f->count && next - i < BATCH; next++) {
            if (tbd_trace_window_of(trace, f->wanted[next].position.time) != window)
                break;
        }
        if (window != UINT32_MAX)
            fetch_batch(f, window, i, next - i);
    }
}

enum tbd_status tbd_call_registers_fetch(struct tbd_call_shapes *shapes,
                                         const struct tbd_call_list *list,
                                         struct tbd_call_registers *out)
{
    struct tbd_session *session = tbd_call_shapes_session(shapes);
    struct fetch f = { .session = session, .out = out };
    enum tbd_status status = TBD_NOMEM;

    *out = (struct tbd_call_registers){ 0 };
    f.wanted = calloc(2 * list->count + 1, sizeof(*f.wanted));
    if (f.wanted == NULL)
        return TBD_NOMEM;
    want(&f, shapes, list);
    if (f.count != 0) {
        out->all = calloc(2 * list->count, sizeof(*out->all));
        f.states = calloc(BATCH, sizeof(*f.states));
    }
    if (f.count == 0 || (out->all != NULL && f.states != NULL))
        status = f.count == 0 ? TBD_OK : tbd_session_replayer(session);
    if (status == TBD_OK && f.count != 0) {
        out->count = list->count;
        fetch_all(&f);
    }
    free(f.states);
    free(f.wanted);
    return status;
}

void tbd_call_registers_free(struct tbd_call_registers *registers)
{
    free(registers->all);
    *registers = (struct tbd_call_registers){ 0 };
}

const struct tbd_output_registers *tbd_call_registers_at(const struct tbd_call_registers *registers,
                                                         size_t call, bool is_return)
{
    const struct tbd_output_registers *found = NULL;

    if (call < registers->count)
        found = &registers->all[2 * call + is_return];
    return found != NULL && found->is_known ? found : NULL;
}
