// SPDX-License-Identifier: MIT
/* file_writes.c - see file_writes.h
 *
 * All calls on the file are put in the order in which they began, by the clock.  A walk in this order says where each one
 * read or wrote; where it depends on an order that is not known, the place is not known.
 *
 * FILE_WRITES-1  A piece of an answer holds the bytes that were read: they have been compared. */
#include "query/channels/file_writes.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/binary_search.h"
#include "format/reading/window_read.h"
#include "query/channels/channel_bytes.h"
#include "query/session/counted_trace.h"
#include "query/text/user_interrupt.h"

#include <stdlib.h>
#include <string.h>

/* A call on the file. */
struct placed_call {
    const struct tbd_fd_file_call *call;
    uint64_t since, until; /* it began after `since` and had returned at `until`, in ns */
    uint64_t at;           /* where it read, wrote, or cut */
    bool is_known;         /* `at` is */
};

/* The last call through an open file, or that changed the file's length. */
struct file_state {
    uint64_t value; /* the position; the length */
    bool is_known;
    size_t last; /* the call; SIZE_MAX: none yet */
};

struct file_search {
    struct tbd_channels *channels;
    struct tbd_channel_answer *answer;
    struct placed_call *calls; /* owned; in order */
    size_t count, capacity;
    size_t *cuts; /* owned: the calls after which the file may be shorter */
    size_t cut_count, cut_capacity;
    size_t target;           /* the read */
    uint64_t offset, bytes;  /* wanted, in the read */
    struct file_state *ends; /* owned; by end */
    struct file_state length;
    uint8_t *read_bytes; /* owned: all that it read */
    struct tbd_channel_part parts[TBD_CHANNEL_PIECES_MAX];
    size_t part_count;
    enum tbd_status status;
};

/* ---- what comes before what ---- */

static bool is_before(const struct file_search *s, const struct placed_call *a,
                      const struct placed_call *b)
{
    const struct tbd_fd_transfer *one = &a->call->transfer, *other = &b->call->transfer;

    if (one->process == other->process)
        return one->order <= other->began_order;
    return a->until <= b->since ||
           tbd_descriptors_precedes(&s->channels->all, one->process, one->order, other->process,
                                    other->began_order);
}

static int by_time(const void *a, const void *b)
{
    const struct placed_call *one = a, *other = b;

    if (one->call->transfer.process == other->call->transfer.process)
        return one->call->transfer.order < other->call->transfer.order ? -1 : 1;
    if (one->since != other->since)
        return one->since < other->since ? -1 : 1;
    return one->call->transfer.process < other->call->transfer.process ? -1 : 1;
}

/* ---- the clock ---- */

/* All moments of a trace whose time is known; absolute times. */
struct moments {
    struct tbd_stamp *items; /* owned */
    size_t count, capacity;
};

static bool put_moment(struct moments *moments, struct tbd_stamp stamp)
{
    if (!tbd_array_grow(&moments->items, moments->count, &moments->capacity,
                        sizeof(*moments->items)))
        return false;
    moments->items[moments->count++] = stamp;
    return true;
}

static enum tbd_status read_moments(const char *path, struct moments *out)
{
    struct tbd_trace *trace;
    struct tbd_error why;
    enum tbd_status status = tbd_counted_trace_open(path, &trace, &why);
    uint32_t windows = status == TBD_OK ? tbd_trace_window_count(trace) : 0;
    bool good = true;

    if (status != TBD_OK)
        return status == TBD_NOMEM ? status : TBD_OK;
    good = put_moment(out, (struct tbd_stamp){ 0, tbd_trace_info(trace)->realtime_ns });
    for (uint32_t i = 0; i < windows && good; i++) {
        uint64_t first = tbd_trace_window(trace, i)->first_time;
        struct tbd_stamp *stamps;
        size_t count;

        if (tbd_trace_stamps(trace, i, &stamps, &count) != TBD_OK)
            continue;
        for (size_t k = 0; k < count && good; k++)
            good = put_moment(out, (struct tbd_stamp){ first + stamps[k].time, stamps[k].ns });
        free(stamps);
    }
    tbd_trace_close(trace);
    return good ? TBD_OK : TBD_NOMEM;
}

/* A stamp at a call's own number of entries may be from before or after it. */
static void put_time(const struct moments *moments, struct placed_call *call)
{
    const struct tbd_fd_transfer *transfer = &call->call->transfer;
    size_t before = TBD_COUNT_BEFORE(i, moments->count, moments->items[i].time <= transfer->began);
    size_t after =
        TBD_COUNT_BEFORE(i, moments->count, moments->items[i].time <= transfer->time + 1);

    call->since = before == 0 ? 0 : moments->items[before - 1].ns;
    call->until = after == moments->count ? UINT64_MAX : moments->items[after].ns;
}

/* The calls of a process follow each other in the list. */
static void put_times(struct file_search *s)
{
    struct moments moments = { .items = NULL };

    for (size_t i = 0; i < s->count && s->status == TBD_OK; i++) {
        uint32_t process = s->calls[i].call->transfer.process;

        if (i == 0 || process != s->calls[i - 1].call->transfer.process) {
            moments.count = 0;
            s->status = read_moments(s->channels->all.processes[process].path, &moments);
        }
        put_time(&moments, &s->calls[i]);
    }
    free(moments.items);
}

static void collect_calls(struct file_search *s, const struct tbd_fd_file_call *read)
{
    const struct tbd_descriptors *all = &s->channels->all;

    for (size_t i = 0; i < all->file_call_count; i++) {
        if (all->file_calls[i].file != read->file)
            continue;
        if (!tbd_array_grow(&s->calls, s->count, &s->capacity, sizeof(*s->calls))) {
            s->status = TBD_NOMEM;
            return;
        }
        s->calls[s->count++] = (struct placed_call){ .call = &all->file_calls[i] };
    }
}

/* ---- places in the file ---- */

/* What a call that follows the last one of the state finds: known only if it is known to follow. */
static uint64_t value_before(const struct file_search *s, struct file_state *state, size_t index)
{
    if (state->last == SIZE_MAX || !is_before(s, &s->calls[state->last], &s->calls[index]))
        state->is_known = false;
    return state->value;
}

static void set_value(struct file_state *state, size_t index, uint64_t value, bool is_known)
{
    *state = (struct file_state){ .value = value, .is_known = is_known, .last = index };
}

static void place_write(struct file_search *s, size_t index, struct file_state *end)
{
    struct placed_call *call = &s->calls[index];
    uint64_t bytes = call->call->transfer.bytes, length = value_before(s, &s->length, index);

    if (call->call->appends) {
        call->at = length;
        call->is_known = s->length.is_known;
    } else if (call->call->offset == TBD_FD_HERE) {
        call->at = value_before(s, end, index);
        call->is_known = end->is_known;
    }
    if (call->call->offset == TBD_FD_HERE)
        set_value(end, index, call->at + bytes, call->is_known);
    if (!call->is_known || call->at + bytes > length || !s->length.is_known)
        set_value(&s->length, index, call->at + bytes, call->is_known && s->length.is_known);
}

static void place_read(struct file_search *s, size_t index, struct file_state *end)
{
    struct placed_call *call = &s->calls[index];

    if (call->call->offset != TBD_FD_HERE)
        return;
    call->at = value_before(s, end, index);
    call->is_known = end->is_known;
    set_value(end, index, call->at + call->call->transfer.bytes, call->is_known);
}

static void place_cut(struct file_search *s, size_t index)
{
    set_value(&s->length, index, s->calls[index].at, true);
    if (tbd_array_grow(&s->cuts, s->cut_count, &s->cut_capacity, sizeof(*s->cuts)))
        s->cuts[s->cut_count++] = index;
    else
        s->status = TBD_NOMEM;
}

static void place_calls(struct file_search *s)
{
    s->length = (struct file_state){ .last = SIZE_MAX };
    for (size_t i = 0; i < s->count; i++) {
        struct placed_call *call = &s->calls[i];
        struct file_state *end = &s->ends[call->call->transfer.end];

        call->at = call->call->offset;
        call->is_known = call->at != TBD_FD_HERE;
        switch (call->call->act) {
        case TBD_FD_FILE_OPENED:
            set_value(end, i, 0, true);
            place_cut(s, i);
            break;
        case TBD_FD_FILE_CUT: place_cut(s, i); break;
        case TBD_FD_FILE_SOUGHT: set_value(end, i, call->at, true); break;
        case TBD_FD_FILE_READ: place_read(s, i, end); break;
        case TBD_FD_FILE_WRITTEN: place_write(s, i, end); break;
        }
    }
}

/* ---- the writes ---- */

static bool is_cut_between(const struct file_search *s, const struct placed_call *write,
                           uint64_t at)
{
    for (size_t i = 0; i < s->cut_count; i++) {
        const struct placed_call *cut = &s->calls[s->cuts[i]];

        if (cut->at <= at && is_before(s, write, cut) && is_before(s, cut, &s->calls[s->target]))
            return true;
    }
    return false;
}

/* May the read have read what this call wrote at the place in the file? */
static bool may_cover(const struct file_search *s, const struct placed_call *call, uint64_t at)
{
    return call->call->act == TBD_FD_FILE_WRITTEN && call->is_known && call->at <= at &&
           at - call->at < call->call->transfer.bytes &&
           !is_before(s, &s->calls[s->target], call) && !is_cut_between(s, call, at);
}

/* How many bytes from `at` on all calls cover that cover `at`, and no other one begins to. */
static uint64_t same_bytes(const struct file_search *s, uint64_t at, uint64_t most)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct placed_call *call = &s->calls[i];

        if (call->call->act != TBD_FD_FILE_WRITTEN || !call->is_known)
            continue;
        if (call->at > at && call->at - at < most)
            most = call->at - at;
        else if (call->at <= at && at - call->at < call->call->transfer.bytes &&
                 call->at + call->call->transfer.bytes - at < most)
            most = call->at + call->call->transfer.bytes - at;
    }
    return most;
}

static bool has_bytes(struct file_search *s, const struct placed_call *write, uint64_t at,
                      uint64_t bytes)
{
    uint64_t in_read = at - s->calls[s->target].at;
    enum tbd_status status = tbd_channel_compare(s->channels, &write->call->transfer,
                                                 at - write->at, s->read_bytes + in_read, bytes);

    if (status != TBD_OK && status != TBD_NOTFOUND)
        s->status = status;
    return status == TBD_OK;
}

/* Several writes may be the last one there; finds the only one of them with the bytes that were read. */
static const struct placed_call *choose(struct file_search *s, uint64_t at, uint64_t bytes)
{
    const struct placed_call *last = NULL, *found = NULL;
    size_t fitting = 0;

    for (size_t i = s->count; i-- > 0 && last == NULL;)
        last = may_cover(s, &s->calls[i], at) ? &s->calls[i] : NULL;
    for (size_t i = 0; last != NULL && i < s->count && s->status == TBD_OK; i++) {
        const struct placed_call *call = &s->calls[i];

        if (call != last && (!may_cover(s, call, at) || is_before(s, call, last)))
            continue;
        if (!has_bytes(s, call, at, bytes))
            continue;
        found = call;
        fitting++;
    }
    if (last != NULL && fitting == 0)
        tbd_channel_refuse(s->answer, "the recorded writes do not give the bytes that were read");
    else if (fitting > 1)
        tbd_channel_refuse(s->answer, "several processes or threads wrote there, and the bytes do "
                                      "not tell whose these are");
    return fitting == 1 ? found : NULL;
}

/* A write of which nobody knows where it went may be what was read. */
static bool has_lost_writes(const struct file_search *s)
{
    for (size_t i = 0; i < s->count; i++) {
        if (s->calls[i].call->act == TBD_FD_FILE_WRITTEN && !s->calls[i].is_known &&
            !is_before(s, &s->calls[s->target], &s->calls[i]))
            return true;
    }
    return false;
}

static void add_part(struct file_search *s, const struct placed_call *write, uint64_t at,
                     uint64_t bytes)
{
    struct tbd_channel_part *part = &s->parts[s->part_count];
    uint64_t offset = at - write->at;

    if (s->part_count != 0 && part[-1].write == &write->call->transfer &&
        part[-1].offset + part[-1].bytes == offset) {
        part[-1].bytes += bytes;
        return;
    }
    *part = (struct tbd_channel_part){ &write->call->transfer, offset, bytes };
    s->part_count++;
}

/* What nobody has written was there before; an answer for a part alone would be none. */
static void find_parts(struct file_search *s)
{
    uint64_t at = s->calls[s->target].at + s->offset, end = at + s->bytes;

    while (at < end && s->part_count < TBD_CHANNEL_PIECES_MAX && s->status == TBD_OK) {
        uint64_t bytes = same_bytes(s, at, end - at);
        const struct placed_call *write = choose(s, at, bytes);

        if (write == NULL) {
            s->part_count = 0;
            return;
        }
        add_part(s, write, at, bytes);
        at += bytes;
    }
}

static void put_parts(struct file_search *s)
{
    for (size_t i = 0; i < s->part_count && s->status == TBD_OK; i++)
        s->status = tbd_channel_put_part(s->channels, &s->parts[i], s->answer);
    TBD_INVARIANT("FILE_WRITES-1",
                  s->status != TBD_OK || s->part_count == 0 || s->answer->count != 0);
}

static bool has_writes(const struct file_search *s)
{
    for (size_t i = 0; i < s->count; i++) {
        if (s->calls[i].call->act == TBD_FD_FILE_WRITTEN)
            return true;
    }
    return false;
}

static void find_writes(struct file_search *s, const struct tbd_fd_file_call *read)
{
    const char *spoiled = s->channels->all.files[read->file].spoiled;
    struct tbd_session *session;

    put_times(s);
    if (s->status != TBD_OK)
        return;
    qsort(s->calls, s->count, sizeof(*s->calls), by_time);
    while (s->calls[s->target].call != read)
        s->target++;
    place_calls(s);
    if (spoiled != NULL)
        tbd_channel_refuse(s->answer, "%s", spoiled);
    else if (!s->calls[s->target].is_known || has_lost_writes(s))
        tbd_channel_refuse(s->answer, "several processes use the file's position at once");
    if (s->answer->refusal[0] != '\0' || s->status != TBD_OK)
        return;
    s->status = tbd_channels_session(s->channels, read->transfer.process, &session);
    if (s->status == TBD_OK)
        s->status = tbd_bytes_read(session, &read->transfer, &s->read_bytes);
    if (s->status == TBD_OK)
        find_parts(s);
    put_parts(s);
}

enum tbd_status tbd_file_writes_find(struct tbd_channels *channels,
                                     const struct tbd_fd_file_call *read, uint64_t offset,
                                     uint64_t bytes, struct tbd_channel_answer *out)
{
    struct file_search s = { channels, out, .offset = offset, .bytes = bytes };

    collect_calls(&s, read);
    s.ends = calloc(channels->all.end_count, sizeof(*s.ends));
    if (s.ends == NULL)
        s.status = TBD_NOMEM;
    if (s.status == TBD_OK && has_writes(&s)) {
        find_writes(&s, read);
        if (s.part_count != 0 || out->refusal[0] != '\0')
            out->kind = "a file";
    }
    free(s.calls);
    free(s.ends);
    free(s.cuts);
    free(s.read_bytes);
    return s.status;
}
