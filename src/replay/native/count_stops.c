// SPDX-License-Identifier: MIT
/* count_stops.c - see count_stops.h
 *
 *   workers:    take the next window, replay it (stops_window.h), put its events into its place
 *   caller:     takes windows in order; puts play's messages and the replay's block counts together (feed.h)
 *   organizer:  in a thread, makes a trace of them, as in play with count=later
 *
 * Play's events are those of the replay; what is not an event (mappings, pages, registers) is play's.
 * A window that does not replay is not counted (stops_lost.h); those around it are.  If the first windows were
 * dropped, the new trace begins as the old one does: with the same window, time, mappings, threads and memory.
 *
 * COUNT_STOPS-1  The new trace takes the old one's place, in one step, when it is complete. (not checked: renameat2
 *     exchanges the two)
 * COUNT_STOPS-2  Whoever writes to the folder of the new trace has the claim. (not checked: count_in() is called with it) */
#include "replay/native/count_stops.h"

#include "format/files/file.h"
#include "format/files/trace_remove.h"
#include "format/reading/window_read.h"
#include "format/trace/trace_handle.h"
#include "format/trace/trace_index.h"
#include "format/window/window_make.h"
#include "organizer/organize.h"
#include "organizer/stops.h"
#include "replay/native/feed.h"
#include "replay/native/stops_claim.h"
#include "replay/native/stops_lost.h"
#include "replay/native/stops_pages.h"
#include "replay/native/stops_turns.h"
#include "replay/native/stops_window.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORKERS_MOST 64u
#define NEW_SUFFIX   ".counted"
#define NEW_NAME     "trace"

struct stops_place {
    struct tbd_buffer events; /* owned */
    bool is_there;
    enum tbd_status status;
    struct tbd_divergence divergence;
    struct tbd_error why;
};

struct stops_counting {
    const struct tbd_count_stops *how;
    struct tbd_trace *trace;
    struct tbd_dir dir;
    struct tbd_stops_claim claim;
    char root[4096]; /* folder in which the new trace is made */
    struct tbd_replayer *replayer;
    struct tbd_stops_blocks blocks;
    struct tbd_feed *feed;
    uint64_t ran; /* instructions of the block entered last, if it was left */
    struct tbd_stops_turns turns;
    struct tbd_kept_modules modules; /* its list is owned */
    bool is_translated;              /* from this window on */
    bool has_end;                    /* play's message was sent */
    uint32_t windows, from, to;      /* windows [from, to) are counted */
    struct tbd_window *first;        /* owned: if windows before it were dropped */
    pthread_t organizer;
    bool has_organizer;
    enum tbd_status organized;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t change;
    uint32_t taken, written, ahead;
    bool is_over;
    struct stops_place *places; /* owned: `ahead` of them, used again and again */
};

struct stops_worker {
    struct stops_counting *counting;
    unsigned number;
    pthread_t thread;
};

/* ---- replaying ---- */

static bool take(struct stops_counting *c, uint32_t *out)
{
    bool is_good;

    pthread_mutex_lock(&c->lock);
    while (!c->is_over && c->taken < c->to && c->taken >= c->written + c->ahead)
        pthread_cond_wait(&c->change, &c->lock);
    is_good = !c->is_over && c->taken < c->to;
    if (is_good)
        *out = c->taken++;
    pthread_mutex_unlock(&c->lock);
    return is_good;
}

static void *work(void *argument)
{
    const struct stops_worker *worker = argument;
    struct stops_counting *c = worker->counting;
    uint32_t index;

    while (take(c, &index)) {
        struct stops_place place = { .is_there = true };

        place.status = tbd_stops_replay(c->replayer, worker->number, index, &c->blocks,
                                        &place.events, &place.divergence, &place.why);
        pthread_mutex_lock(&c->lock);
        c->places[index % c->ahead] = place;
        pthread_cond_broadcast(&c->change);
        pthread_mutex_unlock(&c->lock);
    }
    return NULL;
}

static struct stops_place await(struct stops_counting *c, uint32_t index)
{
    struct stops_place place;

    pthread_mutex_lock(&c->lock);
    while (!c->places[index % c->ahead].is_there)
        pthread_cond_wait(&c->change, &c->lock);
    place = c->places[index % c->ahead];
    c->places[index % c->ahead] = (struct stops_place){ 0 };
    c->written++;
    pthread_cond_broadcast(&c->change);
    pthread_mutex_unlock(&c->lock);
    return place;
}

/* ---- putting together ---- */

/* How many instructions of the block entered last have run, if it was left before its last one: for END. */
static void note_place(struct stops_counting *c, const struct tbd_message *head,
                       const uint8_t *payload)
{
    const struct tbd_block *block;
    struct tbd_msg_passed passed;

    if (head->kind == TBD_MSG_INTERRUPTED && head->bytes >= sizeof(c->ran))
        memcpy(&c->ran, payload, sizeof(c->ran));
    if (head->kind != TBD_MSG_PASSED || head->bytes < sizeof(passed))
        return;
    memcpy(&passed, payload, sizeof(passed));
    block = tbd_block_table_get(c->blocks.table, passed.last);
    c->ran = block && block->def.insn_count ? block->def.insn_count - 1u : 0;
}

/* Instructions that a replay executes as play did, and reports: native play knows nothing of them, until its code is
 * translated. */
static bool is_own(const struct stops_counting *c, const struct tbd_message *head,
                   const uint8_t *payload)
{
    struct tbd_msg_special special;

    if (c->is_translated || head->kind != TBD_MSG_SPECIAL || head->bytes < sizeof(special))
        return false;
    memcpy(&special, payload, sizeof(special));
    return !tbd_specials_have(TBD_SPECIALS_NATIVE_STOPS, (enum tbd_special)special.special) &&
           !(special.flags & TBD_SPECIAL_F_STOP);
}

static bool send_own_event(struct stops_counting *c, const struct tbd_message *head,
                           const uint8_t *payload)
{
    struct tbd_msg_thread turn;

    if (head->kind == TBD_MSG_READ_PAGES) /* see stops_pages.h */
        return true;
    if (head->kind != TBD_MSG_THREAD || head->bytes != sizeof(turn))
        return tbd_feed_message(c->feed, head, payload);
    memcpy(&turn, payload, sizeof(turn));
    return tbd_stops_turn(&c->turns, &turn, tbd_feed_time(c->feed)) &&
           tbd_feed_message(c->feed, head, &turn);
}

/* Sends the replay's block counts after the window's last event. */
static bool send_rest(struct stops_counting *c, struct tbd_reader *events)
{
    struct tbd_message head;
    const uint8_t *payload;

    while ((payload = tbd_stops_next(events, &head))) {
        if (tbd_message_is_event(head.kind) && !is_own(c, &head, payload))
            return false;
        if (!send_own_event(c, &head, payload))
            return false;
        note_place(c, &head, payload);
    }
    return true;
}

/* Sends the replay's messages up to its next event that play had, too. */
static bool send_event(struct stops_counting *c, struct tbd_reader *events, uint32_t kind)
{
    struct tbd_message head;
    const uint8_t *payload;

    while ((payload = tbd_stops_next(events, &head))) {
        bool is_last = tbd_message_is_event(head.kind) && !is_own(c, &head, payload);

        if ((is_last && head.kind != kind) || !send_own_event(c, &head, payload))
            return false;
        note_place(c, &head, payload);
        if (is_last)
            return true;
    }
    return false;
}

static bool send_end(struct stops_counting *c, const struct tbd_message *head,
                     const uint8_t *payload, uint64_t unwritten)
{
    struct tbd_msg_window_end end;

    memcpy(&end, payload, sizeof(end));
    end.time = tbd_feed_time(c->feed);
    end.dirty_pages -= unwritten;
    return tbd_feed_message(c->feed, head, &end) && tbd_feed_end_window(c->feed);
}

/* To play, the block that was left has one instruction. */
static bool send_last(struct stops_counting *c, const struct tbd_message *head, uint8_t *payload)
{
    struct tbd_msg_end end;

    c->has_end = true;
    if (head->bytes >= sizeof(end)) {
        memcpy(&end, payload, sizeof(end));
        end.offset = end.offset == 0 && !c->is_translated ? c->ran : end.offset;
        memcpy(payload, &end, sizeof(end));
    }
    return tbd_feed_message(c->feed, head, payload);
}

/* A block is entered there like any other. */
static bool is_of_play(uint32_t kind)
{
    return kind == TBD_MSG_CUT || kind == TBD_MSG_TRANSLATED;
}

static size_t count_events(struct tbd_reader list)
{
    struct tbd_message head;
    size_t count = 0;

    while (tbd_stops_next(&list, &head))
        count += tbd_message_is_event(head.kind) && !is_of_play(head.kind);
    return count;
}

static bool send_window(struct stops_counting *c, struct tbd_reader stops, struct tbd_reader events)
{
    struct tbd_message head;
    const uint8_t *payload;
    size_t left = count_events(stops);
    struct tbd_stops_pages unwritten;
    uint64_t left_out = 0;
    uint32_t blocks;
    bool good = true;

    pthread_mutex_lock(&c->blocks.lock);
    blocks = tbd_block_table_count(c->blocks.table);
    pthread_mutex_unlock(&c->blocks.lock);
    if (!tbd_feed_blocks(c->feed, blocks)) /* messages name only some of those that were entered */
        return false;
    if (!tbd_stops_pages_find(&unwritten, events))
        return false;
    while (good && (payload = tbd_stops_next(&stops, &head))) {
        if (head.kind == TBD_MSG_WINDOW_END && head.bytes == sizeof(struct tbd_msg_window_end))
            good = send_end(c, &head, payload, left_out);
        else if (head.kind == TBD_MSG_PAGE && !left && head.bytes > 8 &&
                 tbd_stops_pages_have(&unwritten, payload))
            left_out++;
        else if (head.kind == TBD_MSG_NOTE && c->first)
            continue; /* tbd_base_give() has given all */
        else if (is_of_play(head.kind))
            c->is_translated = c->is_translated || head.kind == TBD_MSG_TRANSLATED;
        else if (tbd_message_is_event(head.kind))
            good = left-- && send_event(c, &events, head.kind);
        else if (head.kind == TBD_MSG_PASSED)
            good = left || send_rest(c, &events);
        else if (head.kind == TBD_MSG_END)
            good = send_last(c, &head, (uint8_t *)(uintptr_t)payload);
        else
            good = tbd_feed_message(c->feed, &head, payload);
    }
    tbd_stops_pages_free(&unwritten);
    return good && send_rest(c, &events) && !stops.failed && !events.failed;
}

static struct tbd_reader reader_of(const struct tbd_buffer *list)
{
    return (struct tbd_reader){ .at = list->bytes, .end = list->bytes + list->used };
}

/* A message was not taken: the organizer has given up, or the list is not what it should be. */
static enum tbd_status not_taken(const struct stops_counting *c, uint32_t index, const char *what,
                                 struct tbd_error *why)
{
    const char *failure = tbd_feed_failure(c->feed);

    if (failure)
        return tbd_error_set(why, TBD_IO, c->root, 0, "the counted trace cannot be written: %s",
                             failure);
    return tbd_error_set(why, TBD_CORRUPT, c->dir.path, 0, "window %u: %s", index, what);
}

static enum tbd_status put_window(struct stops_counting *c, uint32_t index,
                                  const struct tbd_buffer *events, struct tbd_error *why)
{
    struct tbd_buffer stops;
    enum tbd_status status = tbd_stops_load(c->trace, index, &stops, why);

    if (status)
        return status;
    if (!send_window(c, reader_of(&stops), reader_of(events)))
        status = not_taken(c, index, "its stops are not those of its replay", why);
    tbd_buffer_free(&stops);
    return status;
}

/* Will the window be lost to every replay?  Where a file of the trace is damaged nothing is known about the program: the trace stays
 * as it is, and the damage is said. */
static bool is_lost(enum tbd_status status)
{
    return status == TBD_DIVERGED;
}

/* The window keeps its stops; `note` says why, NULL: nobody has asked about it. */
static enum tbd_status put_stops(struct stops_counting *c, uint32_t index, const char *note,
                                 struct tbd_error *why)
{
    struct tbd_stops_lost lost = { c->feed,  &c->turns,    &c->blocks,
                                   c->trace, .note = note, .has_notes = c->first != NULL };
    struct tbd_buffer stops;
    enum tbd_status status = tbd_stops_load(c->trace, index, &stops, why);

    if (status)
        return status;
    if (!tbd_stops_send_lost(&lost, reader_of(&stops)))
        status = not_taken(c, index, "its stops", why);
    tbd_buffer_free(&stops);
    c->is_translated = c->is_translated || lost.is_translated;
    c->has_end = c->has_end || lost.has_end;
    c->ran = 0;
    return status;
}

static enum tbd_status put_lost(struct stops_counting *c, uint32_t index,
                                const struct stops_place *place, struct tbd_error *why)
{
    char note[400];

    snprintf(note, sizeof(note),
             "window %u is not counted, its replay does not come to its end: %s", index,
             place->divergence.what[0] ? place->divergence.what : place->why.detail);
    return put_stops(c, index, note, why);
}

static bool has_blocks(struct tbd_reader list)
{
    struct tbd_message head;

    while (tbd_stops_next(&list, &head))
        if (head.kind == TBD_MSG_PASSED)
            return true;
    return false;
}

/* Recording has stopped before the program's end: only the trace says so. */
static bool send_stopped(struct stops_counting *c)
{
    const struct tbd_trace_info *info = tbd_trace_info(c->trace);
    struct tbd_message head = { .kind = TBD_MSG_END };
    struct {
        struct tbd_msg_end end;
        char text[256];
    } payload = { .end = info->end };

    if (c->has_end || info->end.how != TBD_ENDED_DETACHED)
        return true;
    snprintf(payload.text, sizeof(payload.text), "%s", info->end_text);
    head.bytes = (uint32_t)(sizeof(payload.end) + strlen(payload.text) + 1);
    return tbd_feed_message(c->feed, &head, &payload);
}

/* A program that ended just after a window has sent its end in one more, which has no stops and is none of the trace's.
 * One with stops was not written any more. */
static enum tbd_status put_end(struct stops_counting *c, struct tbd_error *why)
{
    const struct tbd_window_summary *last = tbd_trace_window(c->trace, c->windows - 1);
    struct tbd_reader none = { 0 };
    struct tbd_buffer stops = { 0 };
    bool done = true;

    if (!tbd_stops_load_last(c->dir, last->number + 1, &stops, NULL) &&
        !has_blocks(reader_of(&stops)))
        done = send_window(c, reader_of(&stops), none);
    tbd_buffer_free(&stops);
    return done && send_stopped(c) ? TBD_OK
                                   : not_taken(c, c->windows, "events after the last one", why);
}

static bool goes_on(const struct stops_counting *c)
{
    const struct tbd_count_stops *how = c->how;

    return (!how->goes_on || how->goes_on(how->context)) &&
           !(how->is_aside && tbd_stops_claim_is_wanted(&c->claim));
}

static enum tbd_status put_replayed(struct stops_counting *c, uint32_t index, struct tbd_error *why)
{
    struct stops_place place = await(c, index);
    enum tbd_status status = place.status;

    if (is_lost(status)) {
        status = put_lost(c, index, &place, why);
    } else if (status) {
        if (why)
            *why = place.why;
    } else {
        status = put_window(c, index, &place.events, why);
    }
    tbd_buffer_free(&place.events);
    return status;
}

/* The message with which the stream of the dropped windows began. */
static enum tbd_status put_beginning(struct stops_counting *c, struct tbd_error *why)
{
    struct tbd_file header = *tbd_trace_header(c->trace);
    struct tbd_record_view record;

    if (!header.bytes)
        return tbd_error_set(why, TBD_CORRUPT, c->dir.path, 0, "its header is lost");
    header.next = tbd_file_header(&header)->header_bytes;
    while (!tbd_file_next(&header, &record, NULL)) {
        struct tbd_message head = { TBD_MSG_START, (uint32_t)record.bytes };

        if (record.type == TBD_REC_START)
            return tbd_feed_message(c->feed, &head, record.payload)
                       ? TBD_OK
                       : not_taken(c, 0, "its beginning", why);
    }
    return tbd_error_set(why, TBD_CORRUPT, c->dir.path, 0, "its header is damaged");
}

static enum tbd_status put_windows(struct stops_counting *c, struct tbd_error *why)
{
    enum tbd_status status = c->first ? put_beginning(c, why) : TBD_OK;

    for (uint32_t i = 0; i < c->windows && !status; i++) {
        if (!goes_on(c))
            return TBD_INTERRUPTED;
        status = i >= c->from && i < c->to ? put_replayed(c, i, why) : put_stops(c, i, NULL, why);
        if (!status && c->how->progress)
            c->how->progress(c->how->context, i + 1, c->windows);
    }
    return status ? status : put_end(c, why);
}

/* ---- threads ---- */

/* What is kept of it holds for the counted trace; one of which only some windows are counted is for one question. */
static uint64_t budget_of(const struct stops_counting *c)
{
    return c->how->part ? 0 : tbd_trace_info(c->trace)->budget;
}

static void *organize(void *argument)
{
    struct stops_counting *c = argument;
    struct tbd_organize_options options = { .stream_fd = tbd_feed_fd(c->feed),
                                            .root = c->root,
                                            .program = NEW_NAME,
                                            .modules = &c->modules,
                                            .after = c->first ? c->trace : NULL,
                                            .first = c->first,
                                            .age.budget = budget_of(c),
                                            .lean = TBD_ORGANIZE_LEAN_AUTO };
    struct tbd_error why = { 0 };

    c->organized = tbd_organize(&options, &why);
    return NULL;
}

static unsigned worker_count(const struct stops_counting *c)
{
    return c->how->workers > WORKERS_MOST ? WORKERS_MOST : c->how->workers ? c->how->workers : 1;
}

static enum tbd_status run_workers(struct stops_counting *c, struct tbd_error *why)
{
    struct stops_worker workers[WORKERS_MOST];
    enum tbd_status status = TBD_NOMEM;
    unsigned started = 0;

    for (; started < worker_count(c); started++) {
        workers[started] = (struct stops_worker){ .counting = c, .number = started };
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]))
            break;
    }
    if (started)
        status = put_windows(c, why);
    pthread_mutex_lock(&c->lock);
    c->is_over = true;
    pthread_cond_broadcast(&c->change);
    pthread_mutex_unlock(&c->lock);
    for (unsigned i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    return status;
}

/* ---- the whole ---- */

/* Files may have changed since the program ran. */
static bool find_modules(struct stops_counting *c)
{
    const struct tbd_trace_index *index = tbd_trace_index(c->trace);
    struct tbd_kept_module *list = calloc(index->module_count + 1, sizeof(*list));

    for (size_t i = 0; list && i < index->module_count; i++)
        list[i] = (struct tbd_kept_module){ index->modules[i].disk, index->modules[i].path,
                                            index->modules[i].copy };
    c->modules = (struct tbd_kept_modules){ c->dir.fd, index->module_count, list };
    return list != NULL;
}

static enum tbd_status look_at_base(struct stops_counting *c, struct tbd_error *why)
{
    const struct tbd_disk_base *base = &tbd_trace_index(c->trace)->base;

    if (!base->window)
        return TBD_OK;
    c->turns.dropped = base->first_time;
    return tbd_window_load(c->trace, 0, false, &c->first, why);
}

static enum tbd_status set_up(struct stops_counting *c, struct tbd_error *why)
{
    const struct tbd_trace_info *info = tbd_trace_info(c->trace);
    enum tbd_status status;

    c->windows = tbd_trace_window_count(c->trace);
    c->to = c->how->part ? c->how->part->to : c->windows;
    c->from = c->how->part ? c->how->part->from : 0;
    if (c->from > c->to || c->to > c->windows)
        return tbd_error_set(why, TBD_NOWINDOW, c->dir.path, 0, "it has no such windows");
    c->taken = c->written = c->from;
    c->ahead = 2 * worker_count(c);
    c->places = calloc(c->ahead, sizeof(*c->places));
    c->blocks.table = tbd_block_table_new();
    if (!c->places || !c->blocks.table || !find_modules(c))
        return TBD_NOMEM;
    status = tbd_replayer_new(c->trace, worker_count(c), &c->replayer, why);
    if (!status)
        status = look_at_base(c, why);
    if (!status)
        status = tbd_feed_new(&(struct tbd_feed_start){ .window_blocks = info->window_blocks,
                                                        .hook_set = info->hook_set,
                                                        .first_time = c->turns.dropped,
                                                        .table = c->blocks.table },
                              &c->feed);
    if (status)
        return status;
    c->has_organizer = !pthread_create(&c->organizer, NULL, organize, c);
    return c->has_organizer ? TBD_OK : TBD_SYSTEM;
}

static void tear_down(struct stops_counting *c)
{
    for (uint32_t i = 0; c->places && i < c->ahead; i++)
        tbd_buffer_free(&c->places[i].events);
    tbd_replayer_free(c->replayer);
    tbd_feed_free(c->feed);
    tbd_block_table_release(c->blocks.table);
    tbd_stops_turns_free(&c->turns);
    tbd_window_free(c->first);
    free(c->places);
    free((void *)(uintptr_t)c->modules.list);
}

/* A program that executed another one ended so, which no message says. */
static void end_stream(struct stops_counting *c)
{
    tbd_feed_end(c->feed, tbd_trace_info(c->trace)->end.how == TBD_ENDED_EXEC);
    pthread_join(c->organizer, NULL);
}

static enum tbd_status count(struct stops_counting *c, struct tbd_error *why)
{
    enum tbd_status status = set_up(c, why);

    if (!status)
        status = run_workers(c, why);
    if (c->has_organizer)
        end_stream(c);
    if (!status && c->organized)
        status =
            tbd_error_set(why, c->organized, c->root, 0, "the counted trace cannot be written");
    tear_down(c);
    return status;
}

/* What the user has left in the trace's folder stays there. */
static void keep_texts(const struct stops_counting *c, const char *made)
{
    static const char *const names[] = { "position", "frame", "bookmarks" };
    int to = tbd_dir_open(made);

    for (size_t i = 0; to >= 0 && i < sizeof(names) / sizeof(names[0]); i++)
        (void)!linkat(c->dir.fd, names[i], to, names[i], 0);
    if (to >= 0)
        close(to);
}

/* COUNT_STOPS-1. */
static enum tbd_status replace(const struct stops_counting *c, const char *made,
                               struct tbd_error *why)
{
    if (renameat2(AT_FDCWD, made, AT_FDCWD, c->how->path, RENAME_EXCHANGE))
        return tbd_error_set(why, TBD_IO, made, 0, "cannot take the trace's place: %s",
                             strerror(errno));
    return TBD_OK;
}

static void remove_root(const struct stops_counting *c)
{
    char copy[4096], name[4096];
    int above;

    snprintf(copy, sizeof(copy), "%s", c->root);
    snprintf(name, sizeof(name), "%s", c->root);
    above = tbd_dir_open(dirname(copy));
    if (above < 0)
        return;
    (void)!tbd_trace_remove(above, basename(name));
    close(above);
}

static enum tbd_status count_in(struct stops_counting *c, struct tbd_error *why)
{
    char made[8192];
    enum tbd_status status;

    c->dir = (struct tbd_dir){ c->claim.trace, c->how->path };
    remove_root(c);
    snprintf(made, sizeof(made), "%s/" NEW_NAME "-1", c->root);
    status = count(c, why);
    if (!status) {
        keep_texts(c, made);
        status = replace(c, made, why);
    }
    remove_root(c);
    return status;
}

static enum tbd_status open_uncounted(struct stops_counting *c, bool *out_is, struct tbd_error *why)
{
    enum tbd_status status = tbd_trace_open(c->how->path, &c->trace, why);
    const struct tbd_trace_info *info;

    if (status)
        return status;
    info = tbd_trace_info(c->trace);
    *out_is = info->counts_stops && tbd_trace_window_count(c->trace);
    if (info->counts_stops && !info->finished)
        return tbd_error_set(why, TBD_BUSY, c->how->path, 0, "it is still being recorded");
    return TBD_OK;
}

static struct stops_counting counting_of(const struct tbd_count_stops *how)
{
    return (struct stops_counting){ .how = how,
                                    .lock = PTHREAD_MUTEX_INITIALIZER,
                                    .change = PTHREAD_COND_INITIALIZER,
                                    .blocks = { .lock = PTHREAD_MUTEX_INITIALIZER } };
}

/* Beside the trace, and no trace to whoever lists them: FOLDER/.NAME.counted. */
static bool name_root(const char *path, char *out, size_t bytes)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    return (size_t)snprintf(out, bytes, "%.*s.%s" NEW_SUFFIX, (int)(name - path), path, name) <
           bytes;
}

enum tbd_status tbd_count_stops(const struct tbd_count_stops *how, struct tbd_error *why)
{
    struct stops_counting c = counting_of(how);
    enum tbd_status status;
    bool is_uncounted;

    if (!name_root(how->path, c.root, sizeof(c.root)))
        return tbd_error_set(why, TBD_NOTRACE, how->path, 0, "its path is too long");
    status = tbd_stops_claim(&c.claim, how->path, c.root, how->is_aside, why);
    if (status)
        return status;
    status = open_uncounted(&c, &is_uncounted, why);
    if (!status && is_uncounted)
        status = count_in(&c, why);
    tbd_trace_close(c.trace);
    tbd_stops_claim_end(&c.claim);
    return status;
}

enum tbd_status tbd_count_stops_part(const struct tbd_count_stops *how, struct tbd_error *why)
{
    struct stops_counting c = counting_of(how);
    enum tbd_status status;
    bool is_uncounted;

    snprintf(c.root, sizeof(c.root), "%s", how->part->root);
    status = open_uncounted(&c, &is_uncounted, why);
    if (!status && !is_uncounted)
        status = TBD_NOTFOUND;
    if (!status) {
        c.dir = tbd_trace_dir(c.trace);
        status = count(&c, why);
    }
    tbd_trace_close(c.trace);
    return status;
}
