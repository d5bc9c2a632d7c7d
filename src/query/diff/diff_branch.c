// SPDX-License-Identifier: MIT
/* diff_branch.c - see diff_branch.h
 *
 * The branch: from the last common step on, all blocks of the thread are compared, ignored modules too; the last
 * instruction of the last common block is it.
 *
 * Coming together: the steps of the function that parted, and of its callers once it has returned, are taken from both
 * sides with their depth in calls.  Where both have REJOIN_STEPS equal ones in a row, with as few left out as
 * possible, the comparison goes on. */
#include "query/diff/diff_branch.h"

#include "base/array.h"
#include "query/session/thread_path.h"
#include "query/text/user_interrupt.h"

#include <stdlib.h>
#include <string.h>

#define RAW_MAX      (1u << 20) /* blocks between two steps */
#define REJOIN_MAX   3000u      /* steps of one side that are left out at most */
#define REJOIN_STEPS 3u

static uint32_t tid_of(const struct tbd_diff_side *side, uint32_t stream)
{
    return tbd_trace_thread(side->session.trace, stream / 2)->tid;
}

/* ---- the branch ---- */

/* Goes along the blocks of both sides as long as they are equal: *io_time are those of the last equal ones. */
static enum tbd_status last_common_block(struct tbd_diff_side sides[2], uint32_t stream,
                                         uint64_t io_time[2])
{
    struct tbd_path paths[2];
    enum tbd_status status = TBD_OK;
    bool is_equal = true;

    for (unsigned side = 0; side < 2; side++)
        tbd_path_start(&paths[side], &sides[side].session, tid_of(&sides[side], stream),
                       io_time[side]);
    for (uint32_t i = 0; i < RAW_MAX && is_equal && status == TBD_OK; i++) {
        uint64_t keys[2] = { 0 }, times[2] = { 0 };

        for (unsigned side = 0; side < 2 && status == TBD_OK; side++) {
            struct tbd_trace *trace = sides[side].session.trace;
            const struct tbd_path_block *block;

            status = tbd_path_from(&paths[side], io_time[side] + 1, &block);
            if (status != TBD_OK)
                break;
            times[side] = block->time;
            keys[side] = tbd_diff_place_key(&sides[side], tbd_trace_window_of(trace, block->time),
                                            tbd_trace_block(trace, block->id)->def.start);
        }
        is_equal = status == TBD_OK && keys[0] == keys[1];
        if (is_equal)
            memcpy(io_time, times, sizeof(times));
    }
    tbd_path_free(&paths[0]);
    tbd_path_free(&paths[1]);
    return status == TBD_NOTFOUND ? TBD_OK : status;
}

static bool may_part(const struct tbd_place *place)
{
    switch ((enum tbd_end)place->block->def.end) {
    case TBD_END_BRANCH:
    case TBD_END_CALL_INDIRECT:
    case TBD_END_JUMP_INDIRECT:
    case TBD_END_RETURN: return true;
    default: return false;
    }
}

/* The side that was ended by a signal of its own instruction, in the thread's last step; 2: none. */
static unsigned faulting_side(struct tbd_diff_side sides[2], const struct tbd_diff_point *point)
{
    for (unsigned side = 0; side < 2; side++) {
        struct tbd_session *session = &sides[side].session;

        if (!point->has_step[side] && session->info->finished &&
            session->info->end.how == TBD_ENDED_SIGNAL &&
            tbd_session_last(session).time == point->before[side].time)
            return side;
    }
    return 2;
}

static void part_at_fault(struct tbd_diff_side sides[2], const struct tbd_diff_point *point,
                          unsigned side, struct tbd_diff_branch *out)
{
    struct tbd_position last = tbd_session_last(&sides[side].session);

    out->how = TBD_DIFF_PARTS_AT_FAULT;
    for (unsigned i = 0; i < 2; i++)
        out->at[i] = (struct tbd_position){ .time = point->before[i].time, .offset = last.offset };
}

enum tbd_status tbd_diff_branch_find(struct tbd_diff_side sides[2],
                                     const struct tbd_diff_point *point, uint32_t stream,
                                     struct tbd_diff_branch *out)
{
    uint64_t times[2] = { point->before[0].time, point->before[1].time };
    unsigned fault = faulting_side(sides, point);
    enum tbd_status status;
    bool is_branch = true;

    *out = (struct tbd_diff_branch){ .how = TBD_DIFF_PARTS_NOWHERE };
    if (!point->has_before)
        return TBD_OK;
    if (fault != 2) {
        part_at_fault(sides, point, fault, out);
        return TBD_OK;
    }
    status = last_common_block(sides, stream, times);
    for (unsigned side = 0; side < 2 && status == TBD_OK; side++) {
        struct tbd_place place;

        out->at[side].time = times[side];
        status = tbd_session_place(&sides[side].session, out->at[side], &place);
        if (status != TBD_OK)
            break;
        out->at[side].offset = place.insns == 0 ? 0 : place.insns - 1;
        is_branch = is_branch && may_part(&place) &&
                    (!point->has_step[side] || point->step[side].time != point->before[side].time);
    }
    if (status == TBD_OK)
        out->how = is_branch ? TBD_DIFF_PARTS_AT_BRANCH : TBD_DIFF_PARTS_IN_CODE;
    return status;
}

/* ---- a branch further back ---- */

static bool is_step(const struct tbd_diff_side *side, uint32_t id)
{
    const struct tbd_diff_code *code = id < side->code_capacity ? &side->codes[id] : NULL;

    return code != NULL && (code->key != 0 || code->line_count != 0);
}

/* The thread's last block before `time` that is a step. */
static enum tbd_status step_before(struct tbd_diff_side *side, uint32_t stream, uint64_t time,
                                   uint64_t *out)
{
    struct tbd_path path;
    enum tbd_status status = TBD_NOTFOUND;

    tbd_path_start(&path, &side->session, tid_of(side, stream), time);
    for (uint32_t i = 0; i < RAW_MAX; i++) {
        const struct tbd_path_block *block;

        status = tbd_path_before(&path, time, &block);
        if (status != TBD_OK || is_step(side, block->id)) {
            *out = status == TBD_OK ? block->time : 0;
            break;
        }
        time = block->time;
        status = TBD_NOTFOUND;
    }
    tbd_path_free(&path);
    return status;
}

enum tbd_status tbd_diff_branch_before(struct tbd_diff_side sides[2], uint32_t stream,
                                       const uint64_t limit[2], struct tbd_position io_at[2])
{
    uint64_t times[2];
    enum tbd_status status = TBD_OK;

    for (unsigned side = 0; side < 2 && status == TBD_OK; side++)
        status = step_before(&sides[side], stream, io_at[side].time, &times[side]);
    if (status == TBD_OK)
        status = last_common_block(sides, stream, times);
    for (unsigned side = 0; side < 2 && status == TBD_OK; side++) {
        struct tbd_place place;

        if (times[side] >= limit[side])
            return TBD_NOTFOUND;
        io_at[side] = (struct tbd_position){ .time = times[side] };
        status = tbd_session_place(&sides[side].session, io_at[side], &place);
        if (status == TBD_OK && !may_part(&place))
            return TBD_NOTFOUND;
        if (status == TBD_OK)
            io_at[side].offset = place.insns == 0 ? 0 : place.insns - 1;
    }
    return status;
}

/* ---- coming together ---- */

/* A step of the function that parted (depth 0), or of one of its callers (below 0). */
struct rejoin_step {
    uint64_t key, time;
    int64_t depth;
};

struct rejoin_steps {
    struct rejoin_step *steps; /* owned */
    size_t count, capacity;
};

/* Adds the steps of a block, from `number` of its lines on. */
static bool add_level_steps(struct tbd_diff_side *side, const struct tbd_path_block *block,
                            int64_t depth, struct rejoin_steps *out)
{
    const struct tbd_diff_code *code =
        block->id < side->code_capacity ? &side->codes[block->id] : NULL;
    uint32_t count = code == NULL || !code->is_known ? 0 : code->key != 0 ? 1 : code->line_count;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t key = code->key != 0 ? code->key : side->line_keys[code->lines + i];

        if (!tbd_array_grow(&out->steps, out->count, &out->capacity, sizeof(*out->steps)))
            return false;
        out->steps[out->count++] =
            (struct rejoin_step){ .key = key, .time = block->time, .depth = depth };
    }
    return true;
}

/* The steps of a side after it parted at `time`. */
static enum tbd_status read_level(struct tbd_diff_side *side, uint32_t stream, uint64_t time,
                                  struct rejoin_steps *out)
{
    struct tbd_path path;
    int64_t depth = 0, lowest = 0;
    enum tbd_status status = TBD_OK;

    tbd_path_start(&path, &side->session, tid_of(side, stream), time);
    for (uint32_t i = 0; i < RAW_MAX && out->count < REJOIN_MAX; i++) {
        const struct tbd_path_block *block;

        status = tbd_path_from(&path, time, &block);
        if (status != TBD_OK || tbd_is_interrupted())
            break;
        lowest = depth < lowest ? depth : lowest;
        if (i != 0 && depth <= lowest && !add_level_steps(side, block, depth, out)) {
            status = TBD_NOMEM;
            break;
        }
        depth += block->end == TBD_PATH_CALLS ? 1 : block->end == TBD_PATH_RETURNS ? -1 : 0;
        time = block->time + 1;
    }
    tbd_path_free(&path);
    return status == TBD_NOTFOUND ? TBD_OK : status;
}

static bool is_common(const struct rejoin_steps levels[2], size_t a, size_t b)
{
    for (size_t i = 0; i < REJOIN_STEPS; i++) {
        if (a + i >= levels[0].count || b + i >= levels[1].count)
            return i != 0;
        if (levels[0].steps[a + i].key != levels[1].steps[b + i].key ||
            levels[0].steps[a + i].depth != levels[1].steps[b + i].depth)
            return false;
    }
    return true;
}

static bool find_common(const struct rejoin_steps levels[2], size_t out[2])
{
    for (size_t sum = 0; sum < levels[0].count + levels[1].count; sum++) {
        for (size_t a = sum < levels[1].count ? 0 : sum - levels[1].count + 1;
             a <= sum && a < levels[0].count; a++) {
            if (!is_common(levels, a, sum - a))
                continue;
            out[0] = a;
            out[1] = sum - a;
            return true;
        }
    }
    return false;
}

enum tbd_status tbd_diff_rejoin(struct tbd_diff_side sides[2], struct tbd_diff_point *point,
                                uint32_t stream)
{
    struct rejoin_steps levels[2] = { { .steps = NULL }, { .steps = NULL } };
    enum tbd_status status = point->has_before ? TBD_OK : TBD_NOTFOUND;
    size_t at[2];

    for (unsigned side = 0; side < 2 && status == TBD_OK; side++)
        status = read_level(&sides[side], stream, point->before[side].time, &levels[side]);
    if (status == TBD_OK && !find_common(levels, at))
        status = TBD_NOTFOUND;
    for (unsigned side = 0; side < 2 && status == TBD_OK; side++)
        point->reader[side] = (struct tbd_diff_reader){ .side = &sides[side],
                                                        .stream = stream,
                                                        .time = levels[side].steps[at[side]].time,
                                                        .depth = stream % 2 };
    free(levels[0].steps);
    free(levels[1].steps);
    return status;
}

/* ---- the next difference ---- */

struct batch {
    struct tbd_diff_step *steps; /* owned */
    size_t count, at;
};

static enum tbd_status fill(struct batch *batch, struct tbd_diff_reader *reader)
{
    if (batch->at < batch->count)
        return TBD_OK;
    batch->at = 0;
    return tbd_diff_read(reader, batch->steps, TBD_DIFF_CHUNK, &batch->count);
}

static enum tbd_status go_along(struct tbd_diff_point *point, struct batch batches[2])
{
    for (;;) {
        for (unsigned side = 0; side < 2; side++) {
            enum tbd_status status = fill(&batches[side], &point->reader[side]);

            if (status != TBD_OK)
                return status;
            point->has_step[side] = batches[side].count != 0;
            if (point->has_step[side])
                point->step[side] = batches[side].steps[batches[side].at];
        }
        if (!point->has_step[0] || !point->has_step[1] ||
            point->step[0].key != point->step[1].key) {
            point->is_there = point->has_step[0] || point->has_step[1];
            return tbd_is_interrupted() ? TBD_INTERRUPTED : TBD_OK;
        }
        for (unsigned side = 0; side < 2; side++) {
            point->before[side] = point->step[side];
            batches[side].at++;
        }
        point->number++;
    }
}

enum tbd_status tbd_diff_next(struct tbd_diff_point *point)
{
    struct batch batches[2] = { { .count = 0 }, { .count = 0 } };
    enum tbd_status status = TBD_OK;

    for (unsigned side = 0; side < 2; side++) {
        batches[side].steps = calloc(TBD_DIFF_CHUNK, sizeof(*batches[side].steps));
        if (batches[side].steps == NULL)
            status = TBD_NOMEM;
    }
    if (status == TBD_OK)
        status = go_along(point, batches);
    free(batches[0].steps);
    free(batches[1].steps);
    return status;
}
