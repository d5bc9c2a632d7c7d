// SPDX-License-Identifier: MIT
/* thread_path.c - see thread_path.h
 *
 * THREAD_PATH-1  `blocks` ascend in time, and all lie in [from, to). */
#include "query/session/thread_path.h"

#include "base/assert.h"
#include "base/binary_search.h"
#include "format/window/cursor.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_FIRST 256u
#define CHUNK_MAX   (1u << 17)

/* Blocks that are being collected. */
struct collected {
    struct tbd_path_block *blocks; /* owned */
    size_t count, capacity;
    uint64_t handles; /* a signal has come: the thread's next block is its handler's first */
};

void tbd_path_start(struct tbd_path *path, struct tbd_session *session, uint32_t thread,
                    uint64_t time)
{
    *path = (struct tbd_path){
        .session = session, .thread = thread, .from = time, .to = time, .chunk = CHUNK_FIRST
    };
}

void tbd_path_free(struct tbd_path *path)
{
    free(path->blocks);
    path->blocks = NULL;
    path->count = 0;
}

/* ---- collecting ---- */

/* How the block ended, if its last instruction ran. */
static void take_end(const struct tbd_cursor *cursor, struct tbd_path_block *out)
{
    const struct tbd_block_def *def = &cursor->block->def;

    for (uint32_t i = 0; i < def->op_count && i < cursor->op_limit; i++) {
        const struct tbd_op *op = &cursor->block->ops[i];
        uint64_t sp;

        if ((op->kind != TBD_OP_CALL && op->kind != TBD_OP_RET) || op->insn >= out->insns ||
            (op->kind == TBD_OP_CALL && (op->flags & TBD_OPF_TAIL) != 0))
            continue;
        memcpy(&sp, cursor->record + op->data, sizeof(sp));
        out->end = op->kind == TBD_OP_CALL ? TBD_PATH_CALLS : TBD_PATH_RETURNS;
        out->slot = op->kind == TBD_OP_CALL ? sp - 8 : sp;
    }
}

static bool add_block(struct collected *part, const struct tbd_cursor *cursor)
{
    uint64_t limit = tbd_cursor_insn_limit(cursor);
    struct tbd_path_block block = { .time = cursor->time,
                                    .id = cursor->id,
                                    .insns = cursor->block->def.insn_count,
                                    .handles = part->handles };

    if (part->count == part->capacity) {
        size_t capacity = part->capacity == 0 ? CHUNK_FIRST : 2 * part->capacity;
        struct tbd_path_block *bigger = realloc(part->blocks, capacity * sizeof(*bigger));

        if (bigger == NULL)
            return false;
        part->blocks = bigger;
        part->capacity = capacity;
    }
    if (limit < block.insns)
        block.insns = (uint32_t)limit;
    take_end(cursor, &block);
    part->blocks[part->count++] = block;
    part->handles = 0;
    return true;
}

/* The instruction at which the signal came has begun: a fault's ran no further. */
static void take_interrupted(const struct tbd_cursor *cursor, struct tbd_path_block *last)
{
    if (last->id == cursor->id && last->time == cursor->time &&
        last->insns < cursor->block->def.insn_count)
        last->insns++;
}

static void take_message(struct collected *part, const struct tbd_cursor *cursor)
{
    struct tbd_message message;
    struct tbd_msg_signal signal;

    memcpy(&message, cursor->message, sizeof(message));
    if (message.kind != TBD_MSG_SIGNAL || message.bytes < sizeof(signal))
        return;
    memcpy(&signal, (const uint8_t *)cursor->message + sizeof(message), sizeof(signal));
    if (signal.handler <= 1) /* SIG_DFL or SIG_IGN */
        return;
    part->handles = signal.frame;
    if (part->count != 0)
        take_interrupted(cursor, &part->blocks[part->count - 1]);
}

/* The thread's blocks from `from` on, below `to` and within the window. */
static enum tbd_status walk(const struct tbd_path *path, const struct tbd_window *window,
                            uint64_t from, uint64_t to, struct collected *part)
{
    struct tbd_cursor cursor;
    bool more;

    /* A signal's message stands after the block before. */
    if (from <= window->first_time || !tbd_cursor_seek(window, from - 1, &cursor))
        tbd_cursor_first(window, &cursor);
    for (more = cursor.kind != TBD_AT_END; more && cursor.time < to;) {
        if (cursor.kind == TBD_AT_BLOCK && cursor.thread == path->thread && cursor.time >= from &&
            !add_block(part, &cursor))
            return TBD_NOMEM;
        if (cursor.kind == TBD_AT_MESSAGE && cursor.thread == path->thread)
            take_message(part, &cursor);
        more =
            cursor.kind == TBD_AT_BLOCK ? tbd_cursor_skip_block(&cursor) : tbd_cursor_next(&cursor);
    }
    return TBD_OK;
}

static enum tbd_status collect(const struct tbd_path *path, uint64_t from, uint64_t to,
                               struct collected *part)
{
    enum tbd_status status = TBD_OK;

    while (status == TBD_OK && from < to) {
        uint32_t index = tbd_trace_window_of(path->session->trace, from);
        const struct tbd_window *window;
        uint64_t end;

        if (index == UINT32_MAX)
            return TBD_NOTIME;
        status = tbd_session_slice_at(path->session, index, from, &window);
        if (status != TBD_OK)
            return status;
        end = window->first_time + window->blocks;
        status = walk(path, window, from, to, part);
        if (end <= from)
            return status;
        from = end;
    }
    return status;
}

/* ---- the part that is kept ---- */

static bool ascends(const struct tbd_path *path)
{
    for (size_t i = 0; i < path->count; i++) {
        if (path->blocks[i].time < path->from || path->blocks[i].time >= path->to ||
            (i != 0 && path->blocks[i].time <= path->blocks[i - 1].time))
            return false;
    }
    return true;
}

/* Adds a part at the end, or before all others. */
static enum tbd_status join(struct tbd_path *path, const struct collected *part, bool before)
{
    struct tbd_path_block *bigger;

    if (part->count == 0)
        return TBD_OK;
    bigger = realloc(path->blocks, (path->count + part->count) * sizeof(*bigger));
    if (bigger == NULL)
        return TBD_NOMEM;
    if (before)
        memmove(bigger + part->count, bigger, path->count * sizeof(*bigger));
    memcpy(bigger + (before ? 0 : path->count), part->blocks, part->count * sizeof(*bigger));
    path->blocks = bigger;
    path->count += part->count;
    return TBD_OK;
}

/* Takes the next chunk after, or before, what is kept; TBD_NOTFOUND: the recording ends there. */
static enum tbd_status grow(struct tbd_path *path, bool before)
{
    uint64_t first = tbd_session_first(path->session).time;
    uint64_t last = path->session->info->blocks;
    uint64_t from = before ? path->from : path->to, to = from;
    struct collected part = { .blocks = NULL };
    enum tbd_status status;

    if (before)
        from = to - first > path->chunk ? to - path->chunk : first;
    else
        to = last - from > path->chunk ? from + path->chunk : last;
    if (from >= to || to > last || from < first)
        return TBD_NOTFOUND;
    status = collect(path, from, to, &part);
    if (status == TBD_OK)
        status = join(path, &part, before);
    free(part.blocks);
    if (status != TBD_OK)
        return status;
    path->from = before ? from : path->from;
    path->to = before ? path->to : to;
    path->chunk = path->chunk < CHUNK_MAX ? 2 * path->chunk : CHUNK_MAX;
    TBD_INVARIANT("THREAD_PATH-1", ascends(path));
    return TBD_OK;
}

/* What lies far away is taken without what lies between. */
static void move_to(struct tbd_path *path, uint64_t time)
{
    if (time <= path->to + CHUNK_MAX && time + CHUNK_MAX >= path->from)
        return;
    tbd_path_free(path);
    path->from = path->to = time;
    path->chunk = CHUNK_FIRST;
}

static size_t blocks_below(const struct tbd_path *path, uint64_t time)
{
    return TBD_COUNT_BEFORE(i, path->count, path->blocks[i].time < time);
}

enum tbd_status tbd_path_from(struct tbd_path *path, uint64_t time,
                              const struct tbd_path_block **out)
{
    enum tbd_status status = TBD_OK;

    move_to(path, time);
    while (status == TBD_OK && time < path->from)
        status = grow(path, true);
    while (status == TBD_OK) {
        size_t at = blocks_below(path, time);

        if (at < path->count) {
            *out = &path->blocks[at];
            return TBD_OK;
        }
        status = grow(path, false);
    }
    return status;
}

enum tbd_status tbd_path_before(struct tbd_path *path, uint64_t time,
                                const struct tbd_path_block **out)
{
    enum tbd_status status = TBD_OK;

    move_to(path, time);
    while (status == TBD_OK && time > path->to)
        status = grow(path, false);
    while (status == TBD_OK) {
        size_t at = blocks_below(path, time);

        if (at != 0) {
            *out = &path->blocks[at - 1];
            return TBD_OK;
        }
        status = grow(path, true);
    }
    return status;
}
