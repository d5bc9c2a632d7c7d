// SPDX-License-Identifier: MIT
/* kept_events.c - see kept_events.h */
#include "query/search/kept_events.h"

#include "base/array.h"
#include "format/files/large_buffers.h"
#include "query/condition/expr_keep.h"

#include <stdlib.h>
#include <string.h>

#define KEPT_MAX     262144u /* events of one window; if there are more, main walks the window again */
#define KEPT_OWN_MAX 524288u /* the same of small ones */

struct tbd_own_head {
    struct tbd_position position;
    uint64_t sp;
    uint64_t retval; /* of a return */
    uint32_t thread;
    uint32_t flags;
    uint32_t block;
    uint32_t type;
};

struct tbd_own_entry {
    uint64_t pc, from, called_at;
    uint64_t args[6];
};

/* ---- entries and returns ---- */

static bool add_own(struct tbd_kept_events *kept, const struct tbd_event *event)
{
    if (kept->count == KEPT_OWN_MAX ||
        !tbd_large_array_grow(&kept->heads, kept->count, &kept->head_capacity,
                              sizeof(*kept->heads)))
        return false;
    kept->heads[kept->count] = (struct tbd_own_head){ .position = event->position,
                                                      .sp = event->sp,
                                                      .retval = event->retval,
                                                      .thread = event->thread,
                                                      .flags = event->flags,
                                                      .block = event->block,
                                                      .type = event->type };
    if (event->type == TBD_EVENT_FUNC_ENTER) {
        struct tbd_own_entry entry = { event->pc, event->from, event->called_at, { 0 } };

        if (!tbd_large_array_grow(&kept->entries, kept->entry_count, &kept->entry_capacity,
                                  sizeof(*kept->entries)))
            return false;
        memcpy(entry.args, event->args, sizeof(entry.args));
        kept->entries[kept->entry_count++] = entry;
    }
    return true;
}

static const struct tbd_event *next_own(const struct tbd_kept_events *kept,
                                        struct tbd_kept_walk *walk)
{
    const struct tbd_own_head *head = &kept->heads[walk->next++];

    walk->event = (struct tbd_event){ .type = (enum tbd_event_type)head->type,
                                      .position = head->position,
                                      .sp = head->sp,
                                      .retval = head->retval,
                                      .thread = head->thread,
                                      .flags = head->flags,
                                      .block = head->block };
    if (head->type == TBD_EVENT_FUNC_ENTER) {
        const struct tbd_own_entry *entry = &kept->entries[walk->next_entry++];

        walk->event.pc = entry->pc;
        walk->event.from = entry->from;
        walk->event.called_at = entry->called_at;
        memcpy(walk->event.args, entry->args, sizeof(entry->args));
    }
    return &walk->event;
}

/* ---- other events ---- */

/* Copies the event's bytes, because they belong to a window that will be freed, and its kept values. */
static bool copy_bytes(struct tbd_event *event, uint32_t keeps, uint8_t **out)
{
    size_t old = event->old == NULL ? 0 : event->size;
    size_t fresh = event->fresh == NULL ? 0 : event->size;
    size_t values = event->kept == NULL ? 0 : tbd_kept_bytes(event->kept, keeps);
    uint8_t *at;

    *out = NULL;
    if (values + old + fresh == 0)
        return true;
    *out = malloc(values + old + fresh);
    if (*out == NULL)
        return false;
    at = *out + values;
    if (values != 0) /* first, where they are aligned */
        event->kept = memcpy(*out, event->kept, values);
    if (old != 0)
        event->old = memcpy(at, event->old, old);
    if (fresh != 0)
        event->fresh = memcpy(at + old, event->fresh, fresh);
    return true;
}

static bool add_whole(struct tbd_kept_events *kept, const struct tbd_event *event)
{
    size_t n = kept->count;

    if (n == KEPT_MAX ||
        !tbd_large_array_grow(&kept->events, n, &kept->capacity, sizeof(*kept->events)) ||
        !tbd_array_grow(&kept->bytes, n, &kept->bytes_capacity, sizeof(*kept->bytes)))
        return false;
    kept->events[n] = *event;
    return copy_bytes(&kept->events[n], kept->keeps, &kept->bytes[n]);
}

bool tbd_kept_events_add(struct tbd_kept_events *kept, const struct tbd_event *event)
{
    if (!(kept->is_own ? add_own(kept, event) : add_whole(kept, event)))
        return false;
    kept->count++;
    return true;
}

void tbd_kept_events_free(struct tbd_kept_events *kept)
{
    for (size_t i = 0; i < kept->count && kept->bytes != NULL; i++)
        free(kept->bytes[i]);
    free(kept->bytes);
    tbd_large_buffer_give(kept->events);
    tbd_large_buffer_give(kept->heads);
    tbd_large_buffer_give(kept->entries);
    *kept = (struct tbd_kept_events){ .is_own = kept->is_own, .keeps = kept->keeps };
}

const struct tbd_event *tbd_kept_events_next(const struct tbd_kept_events *kept,
                                             struct tbd_kept_walk *walk)
{
    if (walk->next == kept->count)
        return NULL;
    return kept->is_own ? next_own(kept, walk) : &kept->events[walk->next++];
}
