// SPDX-License-Identifier: MIT
/* stops_lost.c - see stops_lost.h */
#include "replay/native/stops_lost.h"

#include "format/window/window_make.h"
#include "organizer/stops.h"

#include <string.h>

static uint32_t add_block(struct tbd_block_table *table, const struct tbd_block *block)
{
    uint32_t id = tbd_block_table_find(table, &block->def, block->ops, block->code, true);

    if (id)
        return id;
    id = tbd_block_table_count(table) + 1;
    return tbd_block_table_put(table, id, &block->def, block->ops, block->code) ? 0 : id;
}

/* The id of a stop's block in the counted trace; 0: there is none. */
static uint32_t block_of(struct tbd_stops_lost *lost, uint32_t id)
{
    const struct tbd_block *block = tbd_trace_block(lost->trace, id);
    uint32_t found = 0;

    pthread_mutex_lock(&lost->blocks->lock);
    if (block)
        found = add_block(lost->blocks->table, block);
    pthread_mutex_unlock(&lost->blocks->lock);
    return found && tbd_feed_blocks(lost->feed, found) ? found : 0;
}

static bool send_passed(struct tbd_stops_lost *lost, const struct tbd_message *head,
                        const uint8_t *payload)
{
    struct tbd_msg_passed passed;

    if (head->bytes != sizeof(passed))
        return false;
    memcpy(&passed, payload, sizeof(passed));
    passed.first = block_of(lost, passed.first);
    passed.last = block_of(lost, passed.last);
    return passed.first && passed.last && tbd_feed_message(lost->feed, head, &passed);
}

static bool send_turn(struct tbd_stops_lost *lost, const struct tbd_message *head,
                      const uint8_t *payload)
{
    struct tbd_msg_thread turn;

    if (head->bytes != sizeof(turn)) /* a new thread, with its registers */
        return tbd_feed_message(lost->feed, head, payload);
    memcpy(&turn, payload, sizeof(turn));
    return tbd_stops_turn(lost->turns, &turn, tbd_feed_time(lost->feed)) &&
           tbd_feed_message(lost->feed, head, &turn);
}

static bool send_window_end(struct tbd_stops_lost *lost, const struct tbd_message *head,
                            const uint8_t *payload)
{
    struct tbd_msg_window_end end;

    if (head->bytes != sizeof(end))
        return false;
    memcpy(&end, payload, sizeof(end));
    end.time = tbd_feed_time(lost->feed);
    return tbd_feed_message(lost->feed, head, &end) && tbd_feed_end_window(lost->feed);
}

static bool send(struct tbd_stops_lost *lost, const struct tbd_message *head,
                 const uint8_t *payload)
{
    lost->has_end = lost->has_end || head->kind == TBD_MSG_END;
    switch (head->kind) {
    case TBD_MSG_PASSED: return send_passed(lost, head, payload);
    case TBD_MSG_THREAD: return send_turn(lost, head, payload);
    case TBD_MSG_WINDOW_END: return send_window_end(lost, head, payload);
    case TBD_MSG_NOTE: return lost->has_notes || tbd_feed_message(lost->feed, head, payload);
    case TBD_MSG_TRANSLATED: lost->is_translated = true; return true;
    default: return tbd_feed_message(lost->feed, head, payload);
    }
}

static bool send_note(struct tbd_stops_lost *lost)
{
    const uint32_t severity = 1;
    char payload[512];
    size_t bytes = lost->note ? strnlen(lost->note, sizeof(payload) - sizeof(severity) - 1) : 0;
    struct tbd_message head = { TBD_MSG_NOTE, (uint32_t)(sizeof(severity) + bytes + 1) };

    if (!lost->note)
        return true;
    memcpy(payload, &severity, sizeof(severity));
    memcpy(payload + sizeof(severity), lost->note, bytes);
    payload[sizeof(severity) + bytes] = 0;
    return tbd_feed_message(lost->feed, &head, payload);
}

/* A window of translated code has times already. */
static bool send_mark(struct tbd_stops_lost *lost, uint32_t first)
{
    const struct tbd_msg_stops stops = { 0 };
    struct tbd_message head = { TBD_MSG_STOPS, sizeof(stops) };

    return first == TBD_MSG_TRANSLATED || tbd_feed_message(lost->feed, &head, &stops);
}

/* Mark and note come before the window's first event, after what a trace begins with. */
bool tbd_stops_send_lost(struct tbd_stops_lost *lost, struct tbd_reader stops)
{
    struct tbd_message head;
    const uint8_t *payload;
    bool is_noted = false;

    while ((payload = tbd_stops_next(&stops, &head))) {
        if (!is_noted && (head.kind == TBD_MSG_PASSED || tbd_message_is_event(head.kind))) {
            is_noted = true;
            if (!send_note(lost) || !send_mark(lost, head.kind))
                return false;
        }
        if (!send(lost, &head, payload))
            return false;
    }
    return !stops.failed;
}
