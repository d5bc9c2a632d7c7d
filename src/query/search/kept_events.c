// SPDX-License-Identifier: MIT
/* kept_events.c - see kept_events.h */
#include "query/search/kept_events.h"

#include "base/array.h"
#include "format/files/large_buffers.h"
#include "query/condition/expr_keep.h"

#include <stdlib.h>
#include <string.h>

#define KEPT_MAX 262144u /* events of one window; if there are more, main walks the window again */

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

bool tbd_kept_events_add(struct tbd_kept_events *kept, const struct tbd_event *event)
{
    size_t n = kept->count;

    if (n == KEPT_MAX ||
        !tbd_large_array_grow(&kept->events, n, &kept->capacity, sizeof(*kept->events)) ||
        !tbd_array_grow(&kept->bytes, n, &kept->bytes_capacity, sizeof(*kept->bytes)))
        return false;
    kept->events[n] = *event;
    if (!copy_bytes(&kept->events[n], kept->keeps, &kept->bytes[n]))
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
    *kept = (struct tbd_kept_events){ .keeps = kept->keeps };
}
