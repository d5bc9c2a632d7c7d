// SPDX-License-Identifier: MIT
/* diff_output.c - see diff_output.h
 *
 * Of each thread the n-th call that gives bytes out belongs to the n-th one of the other side. */
#include "query/diff/diff_output.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#define LOOKED_AT 4096u      /* bytes at once */
#define BYTES_MAX (1u << 20) /* of a call */

struct output_reading {
    struct tbd_diff_side *side;
    struct tbd_diff_output_calls *calls;
    uint64_t *counts; /* owned; by thread */
};

static bool gives_out(uint64_t number)
{
    return number == SYS_write || number == SYS_pwrite64 || number == SYS_sendto;
}

static bool take_call(void *context, const struct tbd_event *event)
{
    struct output_reading *reading = context;
    struct tbd_diff_output_calls *calls = reading->calls;
    const struct tbd_trace *trace = reading->side->session.trace;
    const struct tbd_thread_info *thread =
        tbd_trace_thread_of(trace, event->thread, event->position.time);

    if (!gives_out(event->number) || (int64_t)event->retval <= 0 || thread == NULL)
        return true;
    if (!tbd_array_grow(&calls->all, calls->count, &calls->capacity, sizeof(*calls->all))) {
        calls->no_memory = true;
        return false;
    }
    calls->all[calls->count++] = (struct tbd_diff_output_call){
        .at = event->position,
        .thread = event->thread,
        .index = (uint32_t)(thread - tbd_trace_thread(trace, 0)),
        .nth = reading->counts[thread - tbd_trace_thread(trace, 0)]++,
        .number = event->number,
        .address = event->args[1],
        .bytes = event->retval < BYTES_MAX ? event->retval : BYTES_MAX,
    };
    return true;
}

static int compare_calls(const void *left, const void *right)
{
    const struct tbd_diff_output_call *a = left, *b = right;

    if (a->index != b->index)
        return a->index < b->index ? -1 : 1;
    return a->nth < b->nth ? -1 : a->nth > b->nth;
}

enum tbd_status tbd_diff_output_read(const struct tbd_command_run *run, struct tbd_diff_side *side,
                                     struct tbd_diff_output_calls *out)
{
    struct tbd_command_run own = *run;
    struct tbd_question question = tbd_question_all(TBD_EVENT_SYSCALL);
    struct output_reading reading = { .side = side, .calls = out };
    enum tbd_exit result;

    *out = (struct tbd_diff_output_calls){ 0 };
    own.session = &side->session;
    reading.counts =
        calloc((size_t)tbd_trace_thread_count(side->session.trace) + 1, sizeof(*reading.counts));
    if (reading.counts == NULL) {
        tbd_question_free(&question);
        return TBD_NOMEM;
    }
    result = tbd_command_each(&own, &question, take_call, &reading);
    free(reading.counts);
    if (out->no_memory)
        return TBD_NOMEM;
    if (side->number == 1 && out->count != 0)
        qsort(out->all, out->count, sizeof(*out->all), compare_calls);
    if (result <= TBD_EXIT_NOT_FOUND)
        return TBD_OK;
    return side->session.why.status == TBD_OK ? TBD_IO : side->session.why.status;
}

void tbd_diff_output_free(struct tbd_diff_output_calls *calls)
{
    free(calls->all);
}

/* The call of B's that belongs to A's call `index`; NULL: it has none. */
static const struct tbd_diff_output_call *partner_of(const struct tbd_diff_output_calls calls[2],
                                                     size_t index)
{
    return calls[1].count == 0 ? NULL
                               : bsearch(&calls[0].all[index], calls[1].all, calls[1].count,
                                         sizeof(*calls[1].all), compare_calls);
}

/* The first byte that differs; false: none, as far as both are known. */
static bool find_byte(struct tbd_diff_side sides[2], const struct tbd_diff_output_call *calls[2],
                      uint64_t *out)
{
    uint8_t bytes[2][LOOKED_AT];
    uint64_t both = calls[0]->bytes < calls[1]->bytes ? calls[0]->bytes : calls[1]->bytes;

    for (uint64_t at = 0; at < both; at += LOOKED_AT) {
        size_t count = both - at < LOOKED_AT ? (size_t)(both - at) : LOOKED_AT, i = 0;

        for (unsigned side = 0; side < 2; side++)
            if (tbd_session_read(&sides[side].session, calls[side]->at, calls[side]->address + at,
                                 bytes[side], count) != TBD_OK)
                return false;
        while (i < count && bytes[0][i] == bytes[1][i])
            i++;
        *out = at + i;
        if (i < count)
            return true;
    }
    return false;
}

bool tbd_diff_output_next(struct tbd_diff_side sides[2], struct tbd_diff_output_calls calls[2],
                          struct tbd_diff_value out_values[2], uint32_t *out_stream,
                          uint64_t *out_byte)
{
    while (calls[0].next < calls[0].count) {
        const struct tbd_diff_output_call *pair[2] = { &calls[0].all[calls[0].next],
                                                       partner_of(calls, calls[0].next) };

        calls[0].next++;
        if (pair[1] == NULL || pair[0]->number != pair[1]->number ||
            !find_byte(sides, pair, out_byte))
            continue;
        for (unsigned side = 0; side < 2; side++)
            out_values[side] = (struct tbd_diff_value){ .at = pair[side]->at,
                                                        .thread = pair[side]->thread,
                                                        .place = TBD_WHY_MEMORY,
                                                        .address = pair[side]->address + *out_byte,
                                                        .bytes = 1 };
        *out_stream = 2 * pair[0]->index;
        return true;
    }
    return false;
}
