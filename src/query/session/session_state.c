// SPDX-License-Identifier: MIT
/* session_state.c - registers, memory and the stack at a position
 *
 * A replay to the position gives its registers and the memory around its stack pointer; both are
 * kept until another position is requested. */
#include "query/session/session.h"
#include "query/session/dump_state.h"
#include "format/pages/pages.h"
#include "format/reading/window_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool regs_at_start(struct tbd_session *session, uint32_t index, struct tbd_position position,
                          struct tbd_reg_state *out)
{
    struct tbd_window *window;

    if (position.offset != 0 ||
        tbd_trace_window(session->trace, index)->first_time != position.time)
        return false;
    if (tbd_window_load(session->trace, index, false, &window, &session->why) != TBD_OK)
        return false;
    if ((session->thread != 0 && session->thread != window->regs.thread) ||
        /* something comes before the block */
        (window->log_count != 0 && window->log[0].time == 0)) {
        tbd_window_free(window);
        return false;
    }
    memset(out, 0, sizeof(*out));
    out->position = position;
    tbd_reg_state_put(out, &window->regs, window->xsave);
    tbd_window_free(window);
    return true;
}

static bool is_same_position(struct tbd_position a, struct tbd_position b)
{
    return a.time == b.time && a.offset == b.offset;
}

/* Uses the last result, if it is for this position. */
static bool is_known(const struct tbd_session *session, struct tbd_position position,
                     struct tbd_reg_state *out)
{
    const struct tbd_moment_known *moment = session->moment;

    if (moment == NULL || moment->thread != session->thread ||
        !is_same_position(moment->state.position, position))
        return false;
    *out = moment->state;
    return true;
}

/* Stops at the block's first instruction, too: which block that is says where the position is. */
static enum tbd_status stop_at(struct tbd_session *session, uint32_t window,
                               struct tbd_moment_known *moment)
{
    struct tbd_reg_state *states = calloc(2, sizeof(*states));
    enum tbd_status status;

    if (states == NULL)
        return TBD_NOMEM;
    states[0].position.time = moment->state.position.time;
    states[1] = moment->state;
    status = tbd_session_replay_regs(session, window, states, 2);
    moment->state = states[1];
    moment->block_start = states[0].regs.rip;
    moment->block_thread = states[0].regs.thread;
    free(states);
    return status;
}

static enum tbd_status replay_to(struct tbd_session *session, uint32_t window,
                                 struct tbd_position position)
{
    struct tbd_moment_known *moment = calloc(1, sizeof(*moment));
    enum tbd_status status;

    if (moment == NULL)
        return TBD_NOMEM;
    moment->thread = session->thread;
    moment->state = (struct tbd_reg_state){ .position = position,
                                            .thread = session->thread,
                                            .stack = moment->stack,
                                            .stack_capacity = sizeof(moment->stack) };
    session->stats.replayed++;
    status = stop_at(session, window, moment);
    moment->state.stack = NULL; /* callers get copies without it */
    free(session->moment);
    session->moment = status == TBD_OK ? moment : NULL;
    if (status != TBD_OK)
        free(moment);
    return status;
}

bool tbd_session_knows_start(const struct tbd_session *session, struct tbd_position position)
{
    const struct tbd_moment_known *moment = session->moment;

    return moment != NULL && moment->thread == session->thread && moment->block_start != 0 &&
           is_same_position(moment->state.position, position);
}

enum tbd_status tbd_session_block_start(struct tbd_session *session, uint32_t window,
                                        struct tbd_position position, uint64_t *out,
                                        uint32_t *out_thread)
{
    enum tbd_status status = TBD_OK;

    if (!tbd_session_knows_start(session, position)) {
        status = tbd_session_replayer(session);
        if (status == TBD_OK)
            status = replay_to(session, window, position);
    }
    if (status != TBD_OK)
        return status;
    *out = session->moment->block_start;
    *out_thread = session->moment->block_thread;
    return TBD_OK;
}

enum tbd_status tbd_session_regs(struct tbd_session *session, struct tbd_position position,
                                 struct tbd_reg_state *out)
{
    uint32_t window;
    enum tbd_status status = tbd_session_window_at(session, position, &window);

    if (status == TBD_OK && session->past != NULL)
        return session->past->regs(session->past->context, out);
    if (status == TBD_OK && session->info->is_dump)
        return tbd_dump_regs(session, window, position, out);
    if (status != TBD_OK || is_known(session, position, out) ||
        regs_at_start(session, window, position, out))
        return status;
    status = tbd_session_replayer(session);
    if (status == TBD_OK)
        status = replay_to(session, window, position);
    if (status == TBD_OK)
        *out = session->moment->state;
    return status;
}

static bool is_on_known_stack(const struct tbd_session *session, struct tbd_position position,
                              uint64_t address, size_t bytes)
{
    const struct tbd_moment_known *moment = session->moment;

    return moment != NULL && is_same_position(moment->state.position, position) &&
           address - moment->state.stack_start < moment->state.stack_bytes &&
           bytes <= moment->state.stack_bytes - (address - moment->state.stack_start);
}

const struct tbd_window *tbd_session_summaries(struct tbd_session *session, uint32_t index)
{
    if (session->summaries != NULL && session->summaries->index == index)
        return session->summaries;
    tbd_window_free(session->summaries);
    session->summaries = NULL;
    if (tbd_window_load_summaries(session->trace, index, &session->summaries, NULL) != TBD_OK)
        session->summaries = NULL;
    return session->summaries;
}

/* Memory that the window does not modify needs none of its events. */
static bool read_untouched(struct tbd_session *session, uint32_t index,
                           struct tbd_position position, uint64_t address, void *out, size_t bytes)
{
    return tbd_session_summaries(session, index) != NULL &&
           tbd_trace_read_untouched(session->trace, session->summaries, position, address, out,
                                    bytes) == TBD_OK;
}

/* Events are needed only for memory that the replay to the position did not give and that changed
 * in the window: unpacking a window's events takes longer than looking at both. */
enum tbd_status tbd_session_read(struct tbd_session *session, struct tbd_position position,
                                 uint64_t address, void *out, size_t bytes)
{
    const struct tbd_window *window;
    uint32_t index;
    enum tbd_status status = tbd_session_window_at(session, position, &index);

    if (status == TBD_OK && session->past != NULL)
        return session->past->read(session->past->context, address, out, bytes) ? TBD_OK
                                                                                : TBD_NOTKEPT;
    if (status == TBD_OK && is_on_known_stack(session, position, address, bytes)) {
        memcpy(out, session->moment->stack + (address - session->moment->state.stack_start), bytes);
        return TBD_OK;
    }
    if (status == TBD_OK && !tbd_session_has_slice_at(session, index, position.time) &&
        read_untouched(session, index, position, address, out, bytes))
        return TBD_OK;
    if (status == TBD_OK)
        status = tbd_session_slice_at(session, index, position.time, &window);
    return status == TBD_OK ? tbd_trace_read(session->trace, window, position, address, out, bytes)
                            : status;
}

/* A stack is read word by word, and each read walks the window: so lines of the stack are kept. */
#define DEAR_BLOCKS 8192u
#define LINE_BYTES  512u
#define LINES       8u

struct stack_lines {
    struct tbd_session *session;
    struct tbd_position position;
    uint64_t addresses[LINES]; /* 1 = none */
    unsigned oldest;
    uint8_t bytes[LINES][LINE_BYTES];
};

static const uint8_t *find_line(struct stack_lines *lines, uint64_t address)
{
    unsigned use = lines->oldest;

    for (unsigned i = 0; i < LINES; i++) {
        if (lines->addresses[i] == address)
            return lines->bytes[i];
    }
    lines->addresses[use] = 1;
    if (tbd_session_read(lines->session, lines->position, address, lines->bytes[use], LINE_BYTES) !=
        TBD_OK)
        return NULL;
    lines->addresses[use] = address;
    lines->oldest = (use + 1) % LINES;
    return lines->bytes[use];
}

/* What came with the registers is there already; a line around it may begin before it, and take a walk to the window's end. */
static bool read_memory(void *context, uint64_t address, void *out, size_t bytes)
{
    struct stack_lines *lines = context;
    uint64_t start = address & ~(uint64_t)(LINE_BYTES - 1);
    const uint8_t *line = NULL;

    if (is_on_known_stack(lines->session, lines->position, address, bytes))
        return tbd_session_read(lines->session, lines->position, address, out, bytes) == TBD_OK;
    if (address - start + bytes <= LINE_BYTES)
        line = find_line(lines, start);
    if (line != NULL)
        memcpy(out, line + (address - start), bytes);
    return line != NULL ||
           tbd_session_read(lines->session, lines->position, address, out, bytes) == TBD_OK;
}

enum tbd_status tbd_session_stack(struct tbd_session *session, struct tbd_position position,
                                  struct tbd_frame *out, size_t max, size_t *out_count)
{
    struct stack_lines lines = { .session = session,
                                 .position = position,
                                 .addresses = { 1, 1, 1, 1, 1, 1, 1, 1 } };
    struct tbd_stack_memory memory = { .read = read_memory, .context = &lines };
    struct tbd_reg_state *state = malloc(sizeof(*state));
    enum tbd_status status;

    *out_count = 0;
    if (state == NULL)
        return TBD_NOMEM;
    status = tbd_session_regs(session, position, state);
    memory.unknown = state->unknown;
    if (status == TBD_OK)
        status =
            tbd_stack_unwind(session->symbols, tbd_trace_window_of(session->trace, position.time),
                             &state->regs, &memory, out, max, out_count);
    free(state);
    return status;
}

/* A replay translates the program's code anew: for a large program this takes longer than unpacking
 * a window's events. */
static bool is_replay_dear(const struct tbd_session *session)
{
    return tbd_trace_block_count(session->trace) > DEAR_BLOCKS;
}

/* Uses the window's events if they are in memory, else the registers: a replay usually takes less
 * time than unpacking the events. */
enum tbd_status tbd_session_pc(struct tbd_session *session, struct tbd_position position,
                               uint32_t *out_window, uint64_t *out)
{
    enum tbd_status status = tbd_session_window_at(session, position, out_window);
    struct tbd_place place;
    struct tbd_reg_state *state;

    if (status != TBD_OK)
        return status;
    if (session->past != NULL || (!tbd_session_has_slice_at(session, *out_window, position.time) &&
                                  !is_replay_dear(session))) {
        state = malloc(sizeof(*state));
        status = state == NULL ? TBD_NOMEM : tbd_session_regs(session, position, state);
        *out = status == TBD_OK ? state->regs.rip : 0;
        free(state);
        if (status == TBD_OK)
            return TBD_OK;
    }
    status = tbd_session_place(session, position, &place);
    *out = place.pc;
    return status;
}
