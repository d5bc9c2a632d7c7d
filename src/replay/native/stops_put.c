// SPDX-License-Identifier: MIT
/* stops_put.c - play's messages and the replay's block counts become the stream of a counted trace (count_stops_private.h) */
#include "replay/native/count_stops_private.h"

#include "format/files/file.h"
#include "format/window/window_make.h"
#include "organizer/stops.h"
#include "replay/native/stops_lost.h"
#include "replay/native/stops_pages.h"

#include <stdio.h>
#include <string.h>

/* ---- events ---- */

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

/* The time at which play came to its next event, after more blocks: it belongs right before the event. */
struct stops_clock {
    bool has_passed; /* blocks were entered since the last event */
    bool is_held;
    struct tbd_msg_clock message;
};

static bool hold_clock(struct stops_clock *clock, const struct tbd_message *head,
                       const uint8_t *payload)
{
    if (head->kind != TBD_MSG_CLOCK || head->bytes != sizeof(clock->message) || !clock->has_passed)
        return false;
    memcpy(&clock->message, payload, sizeof(clock->message));
    clock->is_held = true;
    return true;
}

static bool send_clock(struct stops_counting *c, struct stops_clock *clock)
{
    const struct tbd_message head = { TBD_MSG_CLOCK, sizeof(clock->message) };
    bool good = !clock->is_held || tbd_feed_message(c->feed, &head, &clock->message);

    *clock = (struct stops_clock){ .is_held = false };
    return good;
}

/* Sends the replay's messages up to its next event that play had, too. */
static bool send_event(struct stops_counting *c, struct tbd_reader *events, uint32_t kind,
                       struct stops_clock *clock)
{
    struct tbd_message head;
    const uint8_t *payload;

    while ((payload = tbd_stops_next(events, &head))) {
        bool is_last = tbd_message_is_event(head.kind) && !is_own(c, &head, payload);

        if (is_last && (head.kind != kind || !send_clock(c, clock)))
            return false;
        if (!send_own_event(c, &head, payload))
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
    struct stops_clock clock = { .is_held = false };
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
        else if ((head.kind == TBD_MSG_NOTE && c->first) || hold_clock(&clock, &head, payload))
            continue; /* tbd_base_give() has given all notes; the time is sent with the event */
        else if (is_of_play(head.kind))
            c->is_translated = c->is_translated || head.kind == TBD_MSG_TRANSLATED;
        else if (tbd_message_is_event(head.kind))
            good = left-- && send_event(c, &events, head.kind, &clock);
        else if (head.kind == TBD_MSG_PASSED && left)
            clock.has_passed = true;
        else if (head.kind == TBD_MSG_PASSED)
            good = send_rest(c, &events);
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

enum tbd_status tbd_stops_put_stops(struct stops_counting *c, uint32_t index, const char *note,
                                    struct tbd_error *why)
{
    struct tbd_stops_lost lost = { c->feed,  &c->turns,    &c->blocks,
                                   c->trace, .note = note, .has_notes = c->first != NULL };
    struct tbd_buffer stops;
    enum tbd_status status = tbd_stops_load_packed(c->trace, index, &stops, why);

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
    return tbd_stops_put_stops(c, index, note, why);
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
enum tbd_status tbd_stops_put_end(struct stops_counting *c, struct tbd_error *why)
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

/* While the trace is recorded, a file that the window needs may not have been copied yet. */
enum tbd_status tbd_stops_put_replayed(struct stops_counting *c, uint32_t index,
                                       struct tbd_error *why)
{
    struct stops_place place = tbd_stops_workers_await(c, index);
    enum tbd_status status = place.status;

    if (is_lost(status) && c->is_live) {
        status = TBD_INTERRUPTED;
    } else if (is_lost(status)) {
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

enum tbd_status tbd_stops_put_beginning(struct stops_counting *c, struct tbd_error *why)
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
