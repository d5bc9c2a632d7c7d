// SPDX-License-Identifier: MIT
/* session_place.c - the block that is entered at a position, and the position's instruction
 *
 * The events of the position's window have it.  Where they are not in memory, a replay to the position, without events, takes half of the time, and
 * the position's registers are usually asked for, too: it stops at the block's first instruction, and the trace has one block
 * that begins there.  A second place in the same window suggests more of them: then its events are worth their time.
 *
 * SESSION_PLACE-1  Both give the same place. (not checked: test_native_parts.py compares them) */
#include "query/session/position_text.h"
#include "query/session/session.h"

#include "format/window/cursor.h"
#include "format/window/window_make.h"

#include <stdio.h>
#include <string.h>

static enum tbd_status no_place(struct tbd_session *session, struct tbd_position position,
                                const char *why)
{
    session->why = (struct tbd_error){ .status = TBD_NOTIME };
    snprintf(session->why.detail, sizeof(session->why.detail), "position %s: %s",
             tbd_position_text(session, position).text, why);
    return TBD_NOTIME;
}

/* `out` has window, id, block and thread. */
static enum tbd_status complete(struct tbd_session *session, struct tbd_position position,
                                uint64_t limit, struct tbd_place *out)
{
    struct tbd_block_insn insn;

    out->pc = out->block->def.start;
    out->insns = out->block->def.insn_count;
    if (position.offset > out->insns)
        return no_place(session, position, "the block has fewer instructions");
    if (limit < out->insns)
        out->insns = (uint32_t)limit + 1;
    if (position.offset > limit)
        return no_place(session, position, "the block was left before that instruction");
    if (tbd_disas_insn(session->disas, out->id, position.offset, &insn)) {
        out->pc = insn.pc;
        out->insn_bytes = insn.length;
        out->code = insn.bytes;
    }
    return TBD_OK;
}

/* ---- by a replay to it ---- */

/* False: none begins there, or several do, at different times. */
static bool find_block(const struct tbd_session *session, uint64_t start, struct tbd_place *out)
{
    uint32_t count = tbd_trace_block_count(session->trace);

    out->block = NULL;
    for (uint32_t id = 1; id <= count; id++) {
        const struct tbd_block *block = tbd_trace_block(session->trace, id);

        if (block == NULL || block->def.start != start)
            continue;
        if (out->block != NULL)
            return false;
        out->block = block;
        out->id = id;
    }
    return out->block != NULL;
}

/* As tbd_cursor_insn_limit() has it, from the log. */
static uint64_t limit_of(const struct tbd_window *toc, uint64_t time)
{
    uint64_t after = time - toc->first_time + 1, limit = UINT64_MAX;

    for (size_t i = 0; i < toc->log_count && toc->log[i].time <= after; i++) {
        if (toc->log[i].time < after)
            continue;
        if (tbd_message_kind(toc->log[i].message) == TBD_MSG_INTERRUPTED) {
            memcpy(&limit, toc->log[i].message + 1, sizeof(limit));
            return limit;
        }
        break;
    }
    return toc->has_last_block && time == toc->last_time ? toc->last_offset : UINT64_MAX;
}

/* A second place in the window is looked for among its events. */
static bool may_replay(struct tbd_session *session, uint32_t index, struct tbd_position position)
{
    const struct tbd_window_summary *summary = tbd_trace_window(session->trace, index);
    bool has_asked = session->placed == index + 1;

    if (summary->level >= TBD_LEVEL_EVENTS || !summary->complete || session->past != NULL ||
        tbd_session_has_slice_at(session, index, position.time))
        return false;
    session->placed = index + 1;
    return !has_asked || tbd_session_knows_start(session, position);
}

static bool place_by_replay(struct tbd_session *session, struct tbd_position position,
                            struct tbd_place *out, uint64_t *out_limit)
{
    struct tbd_error why = session->why;
    const struct tbd_window *toc;
    uint64_t start;

    if (!may_replay(session, out->window, position))
        return false;
    if (tbd_session_block_start(session, out->window, position, &start, &out->thread) != TBD_OK ||
        !find_block(session, start, out)) {
        session->why = why;
        return false;
    }
    toc = tbd_session_summaries(session, out->window);
    if (toc != NULL)
        *out_limit = limit_of(toc, position.time);
    return toc != NULL;
}

/* ---- by its window's events ---- */

enum tbd_status tbd_session_place(struct tbd_session *session, struct tbd_position position,
                                  struct tbd_place *out)
{
    const struct tbd_window *window;
    struct tbd_cursor cursor;
    enum tbd_status status;
    uint64_t limit;

    memset(out, 0, sizeof(*out));
    status = tbd_session_window_at(session, position, &out->window);
    if (status == TBD_OK && place_by_replay(session, position, out, &limit))
        return complete(session, position, limit, out);
    if (status == TBD_OK)
        status = tbd_session_slice_at(session, out->window, position.time, &window);
    if (status != TBD_OK)
        return status;
    if (!tbd_cursor_seek(window, position.time, &cursor))
        return no_place(session, position, "the window does not hold this time");
    out->id = cursor.id;
    out->block = cursor.block;
    out->thread = cursor.thread;
    return complete(session, position, tbd_cursor_insn_limit(&cursor), out);
}
