// SPDX-License-Identifier: MIT
/* diff_first.c - the first difference of each pair of streams
 *
 * Both runs are walked at the same time, each by a thread of its own, window by window.  Chunks of steps are compared
 * as soon as both sides have them; the first chunk that differs is read again, step by step. */
#include "query/diff/diff.h"

#include "query/text/user_interrupt.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FINE_MAX (TBD_DIFF_CHUNK + 2u * TBD_DIFF_STEPS_OF_BLOCK)

/* ---- walking both sides ---- */

/* A window of one side. */
struct side_walking {
    struct tbd_diff_walk walk;
    uint32_t window; /* the next one */
    enum tbd_status status;
};

static void *walk_one(void *context)
{
    struct side_walking *walking = context;

    walking->status = tbd_diff_walk_window(&walking->walk, walking->window);
    return NULL;
}

static bool has_more(const struct side_walking *walking)
{
    return walking->window < tbd_trace_window_count(walking->walk.side->session.trace);
}

/* The next window of each side that has one; how many sides had. */
static unsigned walk_both(struct side_walking walkings[2])
{
    bool is_first = has_more(&walkings[0]), is_second = has_more(&walkings[1]), is_apart;
    pthread_t thread;

    is_apart = is_first && is_second && pthread_create(&thread, NULL, walk_one, &walkings[1]) == 0;
    if (is_first)
        walk_one(&walkings[0]);
    if (is_apart)
        pthread_join(thread, NULL);
    else if (is_second)
        walk_one(&walkings[1]);
    walkings[0].window += is_first;
    walkings[1].window += is_second;
    return (unsigned)is_first + is_second;
}

/* ---- comparing ---- */

struct diff_finding {
    struct side_walking walkings[2];
    struct tbd_diff_point *points;
    size_t *compared;               /* owned; by stream: chunks that are equal */
    uint32_t count;                 /* of streams */
    uint32_t known;                 /* of streams whose difference is known */
    struct tbd_diff_step *steps[2]; /* owned */
};

static struct tbd_diff_stream *stream_of(struct diff_finding *finding, unsigned side,
                                         uint32_t number)
{
    return &finding->walkings[side].walk.streams[number];
}

/* What both streams have of chunk `number`: how many steps. */
static uint64_t steps_of(const struct tbd_diff_stream *stream, size_t number)
{
    uint64_t before = (uint64_t)number * TBD_DIFF_CHUNK;

    return stream->count <= before                   ? 0
           : stream->count - before < TBD_DIFF_CHUNK ? stream->count - before
                                                     : TBD_DIFF_CHUNK;
}

/* Chunks that both sides have whole; with `is_over` also the last ones.  True: *io_number differs. */
static bool chunks_differ(struct diff_finding *finding, uint32_t stream, bool is_over)
{
    const struct tbd_diff_stream *a = stream_of(finding, 0, stream);
    const struct tbd_diff_stream *b = stream_of(finding, 1, stream);

    for (;; finding->compared[stream]++) {
        size_t number = finding->compared[stream];
        uint64_t of_a = steps_of(a, number), of_b = steps_of(b, number);

        if (is_over && of_a == 0 && of_b == 0)
            return false;
        if (!is_over && (of_a != TBD_DIFF_CHUNK || of_b != TBD_DIFF_CHUNK))
            return false;
        if (of_a != of_b || a->marks[number].hash != b->marks[number].hash)
            return true;
    }
}

static enum tbd_status compare_streams(struct diff_finding *finding, bool is_over)
{
    for (uint32_t i = 0; i < finding->count; i++) {
        if (finding->points[i].is_there || !chunks_differ(finding, i, is_over))
            continue;
        finding->points[i].is_there = true;
        finding->known++;
        stream_of(finding, 0, i)->is_over = stream_of(finding, 1, i)->is_over = true;
    }
    return TBD_OK;
}

/* ---- step by step ---- */

/* A reader of the chunk that differs; at the stream's end if this side has no such chunk. */
static void start_reader(struct diff_finding *finding, unsigned side, uint32_t number,
                         struct tbd_diff_reader *out)
{
    const struct tbd_diff_stream *stream = stream_of(finding, side, number);
    size_t chunk = finding->compared[number];

    *out = (struct tbd_diff_reader){ .side = finding->walkings[side].walk.side,
                                     .stream = number,
                                     .time = UINT64_MAX };
    if (chunk >= stream->mark_count)
        return;
    out->time = stream->marks[chunk].time;
    out->last = stream->marks[chunk].last;
    out->depth = stream->marks[chunk].depth;
}

/* The last step before a chunk. */
static bool step_before(struct diff_finding *finding, unsigned side, uint32_t number,
                        struct tbd_diff_step *out)
{
    const struct tbd_diff_stream *stream = stream_of(finding, side, number);
    size_t chunk = finding->compared[number];

    *out = (struct tbd_diff_step){ .time = stream->last_time, .key = stream->last };
    if (chunk < stream->mark_count) {
        out->time = stream->marks[chunk].before;
        out->key = stream->marks[chunk].last;
    }
    return out->time != UINT64_MAX;
}

static enum tbd_status look_closely(struct diff_finding *finding, uint32_t number)
{
    struct tbd_diff_point *point = &finding->points[number];
    size_t counts[2] = { 0 }, at = 0;

    for (unsigned side = 0; side < 2; side++) {
        enum tbd_status status = TBD_OK;

        start_reader(finding, side, number, &point->reader[side]);
        point->has_before = step_before(finding, side, number, &point->before[side]);
        if (point->reader[side].time != UINT64_MAX)
            status =
                tbd_diff_read(&point->reader[side], finding->steps[side], FINE_MAX, &counts[side]);
        if (status != TBD_OK)
            return status;
    }
    while (at < counts[0] && at < counts[1] &&
           finding->steps[0][at].key == finding->steps[1][at].key)
        at++;
    point->number = (uint64_t)finding->compared[number] * TBD_DIFF_CHUNK + at;
    for (unsigned side = 0; side < 2; side++) {
        point->has_step[side] = at < counts[side];
        if (point->has_step[side])
            point->step[side] = finding->steps[side][at];
        if (at != 0)
            point->before[side] = finding->steps[side][at - 1];
        point->has_before = point->has_before || at != 0;
    }
    return TBD_OK;
}

/* ---- all together ---- */

static enum tbd_status walk_all(struct diff_finding *finding, bool only_first,
                                struct tbd_diff_side **out_failed)
{
    while (!(only_first && finding->known == finding->count) && walk_both(finding->walkings) != 0) {
        for (unsigned side = 0; side < 2; side++) {
            *out_failed = finding->walkings[side].walk.side;
            if (finding->walkings[side].status != TBD_OK)
                return finding->walkings[side].status;
        }
        if (tbd_is_interrupted())
            return TBD_INTERRUPTED;
        (void)compare_streams(finding, false);
    }
    return compare_streams(finding, true);
}

enum tbd_status tbd_diff_find(struct tbd_diff_side sides[2], struct tbd_diff_point *points,
                              uint32_t count, struct tbd_diff_side **out_failed)
{
    struct diff_finding finding = { .points = points, .count = count };
    enum tbd_status status = TBD_OK;

    *out_failed = &sides[0];
    for (unsigned side = 0; side < 2; side++) {
        if (status == TBD_OK)
            status = tbd_diff_walk_start(&sides[side], &finding.walkings[side].walk);
        finding.steps[side] = calloc(FINE_MAX, sizeof(*finding.steps[side]));
    }
    finding.compared = calloc((size_t)count + 1, sizeof(*finding.compared));
    if (finding.compared == NULL || finding.steps[0] == NULL || finding.steps[1] == NULL)
        status = TBD_NOMEM;
    if (status == TBD_OK)
        status = walk_all(&finding, sides[0].rules->only_first, out_failed);
    for (uint32_t i = 0; i < count && status == TBD_OK; i++)
        if (points[i].is_there)
            status = look_closely(&finding, i);
    for (unsigned side = 0; side < 2; side++) {
        tbd_diff_walk_end(&finding.walkings[side].walk);
        free(finding.steps[side]);
    }
    free(finding.compared);
    return status;
}
