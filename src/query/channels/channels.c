// SPDX-License-Identifier: MIT
/* channels.c - see channels.h
 *
 * The reads of a channel have one order, or nothing can be said.  The writes are put in order one by one
 * along it; where several may be next, each whose bytes are those that were read is tried.
 *
 * CHANNELS-1  A piece of an answer holds the bytes that were read: they have been compared. */
#include "query/channels/channels_private.h"

#include "base/binary_search.h"
#include "base/array.h"
#include "base/assert.h"
#include "query/channels/channel_bytes.h"
#include "query/channels/channel_order.h"
#include "query/channels/file_writes.h"
#include "query/text/user_interrupt.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BRANCHES_MAX 4096u       /* orders that are tried */
#define COMPARED_MAX 20000u      /* writes that are compared */
#define READ_MAX     (64u << 20) /* bytes of one read that are looked at */

/* ---- sessions ---- */

enum tbd_status tbd_channels_open(struct tbd_session *session, struct tbd_channels **out)
{
    struct tbd_channels *channels = calloc(1, sizeof(*channels));
    enum tbd_status status;

    *out = NULL;
    if (channels == NULL)
        return TBD_NOMEM;
    status = tbd_descriptors_read(session->info, &channels->all);
    if (status == TBD_OK) {
        channels->sessions = calloc(channels->all.process_count + 1u, sizeof(struct tbd_session *));
        status = channels->sessions == NULL ? TBD_NOMEM : TBD_OK;
    }
    if (status != TBD_OK) {
        tbd_channels_close(channels);
        return status;
    }
    channels->sessions[channels->all.asked] = session;
    *out = channels;
    return TBD_OK;
}

void tbd_channels_close(struct tbd_channels *channels)
{
    if (channels == NULL)
        return;
    for (uint32_t i = 0; channels->sessions != NULL && i < channels->all.process_count; i++) {
        if (i == channels->all.asked || channels->sessions[i] == NULL)
            continue;
        tbd_session_close(channels->sessions[i]);
        free(channels->sessions[i]);
    }
    free(channels->sessions);
    tbd_descriptors_free(&channels->all);
    free(channels);
}

const struct tbd_descriptors *tbd_channels_descriptors(const struct tbd_channels *channels)
{
    return &channels->all;
}

uint32_t tbd_channels_own(const struct tbd_channels *channels)
{
    return channels->all.asked;
}

uint32_t tbd_channels_pid(const struct tbd_channels *channels, uint32_t process)
{
    return channels->all.processes[process].pid;
}

const char *tbd_channels_trace(const struct tbd_channels *channels, uint32_t process)
{
    return channels->all.processes[process].path;
}

struct tbd_session *tbd_channels_opened(const struct tbd_channels *channels, uint32_t *process)
{
    while (*process < channels->all.process_count) {
        uint32_t index = (*process)++;

        if (index != channels->all.asked && channels->sessions[index] != NULL)
            return channels->sessions[index];
    }
    return NULL;
}

enum tbd_status tbd_channels_session(struct tbd_channels *channels, uint32_t process,
                                     struct tbd_session **out)
{
    const struct tbd_session *own = channels->sessions[channels->all.asked];
    struct tbd_session *session;
    enum tbd_status status;

    *out = channels->sessions[process];
    if (*out != NULL)
        return TBD_OK;
    session = calloc(1, sizeof(*session));
    if (session == NULL)
        return TBD_NOMEM;
    session->json = own->json;
    session->csv = own->csv;
    session->workers = own->workers;
    session->no_cache = own->no_cache;
    session->print = own->print;
    session->shows_wall = own->shows_wall;
    session->syntax = own->syntax;
    status = tbd_session_open(session, channels->all.processes[process].path);
    if (status != TBD_OK) {
        tbd_session_close(session);
        free(session);
        return status;
    }
    *out = channels->sessions[process] = session;
    return TBD_OK;
}

/* ---- the order of reads ---- */

/* A read, and where its bytes lie in the channel: in messages, the number of the message. */
struct ordered_read {
    const struct tbd_fd_transfer *transfer;
    uint64_t from;
};

struct following {
    struct tbd_channels *channels;
    const struct tbd_fd_channel *channel;
    struct tbd_channel_answer *answer;
    struct tbd_channel_tracks reads, writes;
    struct ordered_read *ordered; /* owned */
    size_t ordered_count, ordered_capacity;
    uint64_t total; /* bytes or messages that were read */
    const struct tbd_fd_transfer *target;
    uint64_t offset, bytes; /* wanted, in the target */
    uint64_t start;         /* the target's place in the channel */
    bool compares_all;
    size_t compared, branches;
    const struct tbd_fd_transfer *kept; /* whose bytes `kept_bytes` are */
    uint8_t *kept_bytes;                /* owned */
    enum tbd_status status;
};

static bool is_refused(const struct following *f)
{
    return f->status != TBD_OK || f->answer->refusal[0] != '\0';
}

static uint32_t pid_of(const struct following *f, const struct tbd_fd_transfer *transfer)
{
    return f->channels->all.processes[transfer->process].pid;
}

static void put_read(struct following *f, const struct tbd_fd_transfer *transfer)
{
    if (transfer == f->target)
        f->start = f->total;
    if (transfer->peeks)
        return;
    if (!tbd_array_grow(&f->ordered, f->ordered_count, &f->ordered_capacity, sizeof(*f->ordered))) {
        f->status = TBD_NOMEM;
        return;
    }
    f->ordered[f->ordered_count++] = (struct ordered_read){ transfer, f->total };
    f->total += f->channel->is_messages ? 1 : transfer->bytes;
}

/* Reads after the target are needed only where they help to decide: they are taken as far as their order
 * is known. */
static void order_reads(struct following *f)
{
    uint32_t next[TBD_CHANNEL_TRACKS_MAX] = { 0 }, may[TBD_CHANNEL_TRACKS_MAX];
    bool has_target = false;

    for (;;) {
        size_t count = tbd_channel_may_be_next(&f->reads, next, may);
        const struct tbd_fd_transfer *read;

        if (count > 1 && !has_target) {
            const struct tbd_fd_transfer *other = f->reads.tracks[may[1]].items[next[may[1]]];

            read = f->reads.tracks[may[0]].items[next[may[0]]];
            tbd_channel_refuse(f->answer,
                               "the order of the reads by process %" PRIu32 " and process %" PRIu32
                               " is not known",
                               pid_of(f, read), pid_of(f, other));
        }
        if (count != 1 || is_refused(f))
            return;
        read = f->reads.tracks[may[0]].items[next[may[0]]++];
        has_target = has_target || read == f->target;
        put_read(f, read);
        if (tbd_is_interrupted())
            f->status = TBD_INTERRUPTED;
    }
}

/* ---- comparing ---- */

/* The bytes of a read; borrowed until the next read is asked for; NULL: not known. */
static const uint8_t *bytes_of_read(struct following *f, const struct tbd_fd_transfer *read)
{
    struct tbd_session *session;
    enum tbd_status status;

    if (f->kept == read)
        return f->kept_bytes;
    free(f->kept_bytes);
    f->kept_bytes = NULL;
    f->kept = NULL;
    if (read->bytes > READ_MAX)
        return NULL;
    status = tbd_channels_session(f->channels, read->process, &session);
    if (status == TBD_OK)
        status = tbd_bytes_read(session, read, &f->kept_bytes);
    if (status == TBD_NOMEM || status == TBD_INTERRUPTED)
        f->status = status;
    if (status == TBD_OK)
        f->kept = read;
    return f->kept_bytes;
}

/* Are `bytes` bytes from `at` on in the write those from `from` on in the read? */
static bool is_same(struct following *f, const struct tbd_fd_transfer *write, uint64_t at,
                    const struct tbd_fd_transfer *read, uint64_t from, uint64_t bytes)
{
    const uint8_t *expected = bytes_of_read(f, read);
    enum tbd_status status;

    if (expected == NULL)
        return false;
    status = tbd_channel_compare(f->channels, write, at, expected + from, bytes);
    if (status != TBD_OK && status != TBD_NOTFOUND)
        f->status = status;
    return status == TBD_OK;
}

/* The read that byte or message `at` of the channel belongs to; NULL: nobody has read it. */
static const struct ordered_read *read_at(const struct following *f, uint64_t at)
{
    size_t begun;

    if (at >= f->total)
        return NULL;
    begun = TBD_COUNT_BEFORE(i, f->ordered_count, f->ordered[i].from <= at);
    return &f->ordered[begun == 0 ? 0 : begun - 1];
}

/* Can the write's bytes lie at `at` in the channel?  Those that nobody has read are not known. */
static bool fits(struct following *f, const struct tbd_fd_transfer *write, uint64_t at)
{
    uint64_t done = 0;

    if (++f->compared > COMPARED_MAX) {
        tbd_channel_refuse(f->answer, "too many writes would have to be compared");
        return false;
    }
    if (f->channel->is_messages) {
        const struct ordered_read *read = read_at(f, at);

        return read == NULL || (read->transfer->bytes <= write->bytes &&
                                is_same(f, write, 0, read->transfer, 0, read->transfer->bytes));
    }
    while (done < write->bytes) {
        const struct ordered_read *read = read_at(f, at + done);
        uint64_t from, part;

        if (read == NULL)
            return true;
        from = at + done - read->from;
        part = read->transfer->bytes - from;
        part = part < write->bytes - done ? part : write->bytes - done;
        if (!is_same(f, write, done, read->transfer, from, part))
            return false;
        done += part;
    }
    return true;
}

/* ---- the order of writes ---- */

/* An order of the writes up to `at` in the channel. */
struct write_order {
    uint32_t next[TBD_CHANNEL_TRACKS_MAX];
    uint64_t at;
    struct tbd_channel_part parts[TBD_CHANNEL_PIECES_MAX];
    size_t part_count;
};

static void take_part(const struct following *f, struct write_order *order,
                      const struct tbd_fd_transfer *write)
{
    bool is_messages = f->channel->is_messages;
    uint64_t first = is_messages ? 0 : order->at;
    uint64_t from = is_messages ? f->offset : f->start + f->offset, to = from + f->bytes;
    struct tbd_channel_part *part;

    if (is_messages && order->at != f->start)
        return;
    if (first + write->bytes <= from || first >= to || order->part_count == TBD_CHANNEL_PIECES_MAX)
        return;
    part = &order->parts[order->part_count++];
    part->write = write;
    part->offset = from > first ? from - first : 0;
    part->bytes = (to < first + write->bytes ? to - first : write->bytes) - part->offset;
}

static void advance(const struct following *f, struct write_order *order, uint32_t track)
{
    const struct tbd_fd_transfer *write = f->writes.tracks[track].items[order->next[track]++];

    take_part(f, order, write);
    order->at += f->channel->is_messages ? 1 : write->bytes;
}

struct order_search {
    struct following *f;
    uint64_t limit;            /* of the channel: orders are followed up to there */
    struct write_order *stack; /* owned: orders that are not finished */
    size_t stack_count, stack_capacity;
    struct write_order *seen; /* owned: where several writes could be next */
    size_t seen_count, seen_capacity;
    struct write_order found;
    size_t found_count; /* different answers */
};

static bool is_same_order(const struct write_order *a, const struct write_order *b)
{
    return a->part_count == b->part_count && memcmp(a->next, b->next, sizeof(a->next)) == 0 &&
           memcmp(a->parts, b->parts, a->part_count * sizeof(*a->parts)) == 0;
}

static bool is_seen(struct order_search *search, const struct write_order *order)
{
    for (size_t i = 0; i < search->seen_count; i++) {
        if (is_same_order(&search->seen[i], order))
            return true;
    }
    if (!tbd_array_grow(&search->seen, search->seen_count, &search->seen_capacity,
                        sizeof(*search->seen))) {
        search->f->status = TBD_NOMEM;
        return true;
    }
    search->seen[search->seen_count++] = *order;
    return false;
}

static void put_order(struct order_search *search, const struct write_order *order)
{
    if (++search->f->branches > BRANCHES_MAX) {
        tbd_channel_refuse(search->f->answer,
                           "several processes or threads wrote to it, in too many orders");
        return;
    }
    if (!tbd_array_grow(&search->stack, search->stack_count, &search->stack_capacity,
                        sizeof(*search->stack))) {
        search->f->status = TBD_NOMEM;
        return;
    }
    search->stack[search->stack_count++] = *order;
}

static void note_found(struct order_search *search, const struct write_order *order)
{
    if (search->found_count != 0 && order->part_count == search->found.part_count &&
        memcmp(order->parts, search->found.parts, order->part_count * sizeof(*order->parts)) == 0)
        return;
    search->found = *order;
    search->found_count++;
}

/* Follows one order until its end, or until several writes can be next. */
static void follow_order(struct order_search *search, struct write_order *order)
{
    struct following *f = search->f;

    while (order->at < search->limit && !is_refused(f)) {
        uint32_t may[TBD_CHANNEL_TRACKS_MAX];
        size_t count = tbd_channel_may_be_next(&f->writes, order->next, may), kept = 0;

        if (tbd_is_interrupted())
            f->status = TBD_INTERRUPTED;
        for (size_t i = 0; i < count && (count > 1 || f->compares_all); i++) {
            const struct tbd_channel_track *track = &f->writes.tracks[may[i]];

            if (fits(f, track->items[order->next[may[i]]], order->at))
                may[kept++] = may[i];
        }
        if (count > 1 || f->compares_all)
            count = kept;
        if (count == 0)
            return;
        if (count > 1 && is_seen(search, order))
            return;
        for (size_t i = 1; i < count && !is_refused(f); i++) {
            struct write_order other = *order;

            advance(f, &other, may[i]);
            put_order(search, &other);
        }
        advance(f, order, may[0]);
    }
    if (!is_refused(f))
        note_found(search, order);
}

/* Returns how many different answers there are. */
static size_t search_orders(struct following *f, uint64_t limit, struct write_order *out)
{
    struct order_search search = { .f = f, .limit = limit };
    struct write_order order = { .at = 0 };

    put_order(&search, &order);
    while (search.stack_count != 0 && !is_refused(f)) {
        order = search.stack[--search.stack_count];
        follow_order(&search, &order);
    }
    free(search.stack);
    free(search.seen);
    *out = search.found;
    return search.found_count;
}

/* ---- the answer ---- */

static void refuse_unfound(struct following *f)
{
    const struct tbd_descriptors *all = &f->channels->all;

    for (uint32_t i = 0; i < all->process_count; i++) {
        if (all->processes[i].loss[0] != '\0') {
            tbd_channel_refuse(f->answer, "its other end may belong to process %" PRIu32 ": %s",
                               all->processes[i].pid, all->processes[i].loss);
            return;
        }
    }
    if (f->writes.count == 0)
        tbd_channel_refuse(f->answer, "no recorded process wrote to it");
    else if (f->channel->has_others || all->has_passing)
        tbd_channel_refuse(f->answer, "a process that is not recorded may have written to it, too");
    else
        tbd_channel_refuse(f->answer, "the recorded writes do not give the bytes that were read");
}

/* CHANNELS-1 */
static bool check_parts(struct following *f, const struct write_order *order)
{
    uint64_t at = f->offset;

    for (size_t i = 0; i < order->part_count; i++) {
        const struct tbd_channel_part *part = &order->parts[i];

        if (!is_same(f, part->write, part->offset, f->target, at, part->bytes))
            return false;
        at += part->bytes;
    }
    return order->part_count != 0;
}

static void find_writes(struct following *f)
{
    uint64_t end = f->channel->is_messages ? f->start + 1 : f->start + f->offset + f->bytes;
    struct write_order order;
    size_t count = search_orders(f, end, &order);

    if (count > 1 && f->total > end)
        count = search_orders(f, f->total, &order);
    if (is_refused(f))
        return;
    if (count > 1) {
        tbd_channel_refuse(
            f->answer,
            "several processes or threads wrote to it, and the bytes do not tell whose these are");
        return;
    }
    if (count == 0 || !check_parts(f, &order)) {
        if (f->status == TBD_OK)
            refuse_unfound(f);
        return;
    }
    for (size_t i = 0; i < order.part_count && f->status == TBD_OK; i++)
        f->status = tbd_channel_put_part(f->channels, &order.parts[i], f->answer);
    TBD_INVARIANT("CHANNELS-1", f->status != TBD_OK || f->answer->count != 0);
}

static void follow_channel(struct following *f)
{
    const struct tbd_descriptors *all = &f->channels->all;
    uint32_t channel = f->target->channel;

    f->channel = &all->channels[channel];
    f->answer->kind = f->channel->kind;
    f->compares_all =
        f->channel->is_named || f->channel->has_others || all->has_passing || all->has_async;
    if (f->channel->spoiled != NULL) {
        tbd_channel_refuse(f->answer, "%s", f->channel->spoiled);
        return;
    }
    f->status = tbd_channel_tracks_make(all, channel, false, f->target, &f->reads);
    if (f->status == TBD_OK)
        f->status = tbd_channel_tracks_make(all, channel, true, NULL, &f->writes);
    if (f->reads.is_too_many || f->writes.is_too_many)
        tbd_channel_refuse(f->answer, "too many processes and threads use it");
    if (!is_refused(f))
        order_reads(f);
    if (!is_refused(f))
        find_writes(f);
}

static void refuse_end(const struct tbd_fd_end *end, struct tbd_channel_answer *answer)
{
    if (end->origin == TBD_FD_OUTSIDE)
        tbd_channel_refuse(answer,
                           "what its descriptor leads to is not recorded: it was open before");
    else if (end->origin == TBD_FD_PASSED)
        tbd_channel_refuse(answer, "its descriptor came from another process (SCM_RIGHTS)");
}

/* Does the read put bytes at the address?  Then f->offset and f->bytes are those of them that are wanted. */
static enum tbd_status is_read_to(struct tbd_session *session, const struct tbd_fd_transfer *read,
                                  uint64_t address, struct following *f, bool *out)
{
    struct tbd_bytes_layout layout;
    enum tbd_status status = tbd_bytes_layout(session, read, &layout);

    *out = false;
    if (status != TBD_OK)
        return status;
    *out = tbd_bytes_find(&layout, address, f->bytes, &f->offset, &f->bytes);
    free(layout.spans);
    return TBD_OK;
}

/* The read at `time` that put bytes at the address: from a channel, or from a file (*out_file). */
static enum tbd_status find_target(struct tbd_channels *channels, uint32_t process, uint64_t time,
                                   uint64_t address, struct following *f,
                                   const struct tbd_fd_file_call **out_file)
{
    const struct tbd_descriptors *all = &channels->all;
    struct tbd_session *session;
    enum tbd_status status = tbd_channels_session(channels, process, &session);
    bool is_there = false;

    for (size_t i = 0; status == TBD_OK && i < all->transfer_count && !is_there; i++) {
        const struct tbd_fd_transfer *item = &all->transfers[i];

        if (item->process == process && item->time == time && !item->is_write)
            status = is_read_to(session, item, address, f, &is_there);
        f->target = is_there ? item : NULL;
    }
    for (size_t i = 0; status == TBD_OK && i < all->file_call_count && !is_there; i++) {
        const struct tbd_fd_file_call *item = &all->file_calls[i];

        if (item->transfer.process == process && item->transfer.time == time &&
            item->act == TBD_FD_FILE_READ)
            status = is_read_to(session, &item->transfer, address, f, &is_there);
        *out_file = is_there ? item : NULL;
    }
    return status;
}

enum tbd_status tbd_channels_find(struct tbd_channels *channels, uint32_t process, uint64_t time,
                                  uint64_t address, uint64_t bytes, struct tbd_channel_answer *out)
{
    struct following f = { .channels = channels, .answer = out, .bytes = bytes };
    const struct tbd_fd_file_call *file = NULL;

    *out = (struct tbd_channel_answer){ .kind = NULL };
    f.status = find_target(channels, process, time, address, &f, &file);
    if (f.status == TBD_OK && file != NULL)
        return tbd_file_writes_find(channels, file, f.offset, f.bytes, out);
    if (f.status != TBD_OK || f.target == NULL)
        return f.status;
    if (f.target->channel == 0)
        refuse_end(&channels->all.ends[f.target->end], out);
    else
        follow_channel(&f);
    tbd_channel_tracks_free(&f.reads);
    tbd_channel_tracks_free(&f.writes);
    free(f.ordered);
    free(f.kept_bytes);
    return f.status;
}
