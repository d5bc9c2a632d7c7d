// SPDX-License-Identifier: MIT
/* stops_pages.c - see stops_pages.h
 *
 * A window may have tens of thousands of pages and of messages, so the messages are read once. */
#include "replay/native/stops_pages.h"

#include "base/array.h"
#include "organizer/stops.h"

#include <stdlib.h>
#include <string.h>

static size_t count_addresses(struct tbd_reader events)
{
    struct tbd_message head;
    size_t count = 0;

    while (tbd_stops_next(&events, &head))
        count += head.kind == TBD_MSG_READ_PAGES ? head.bytes / sizeof(uint64_t) : 0;
    return count;
}

bool tbd_stops_pages_find(struct tbd_stops_pages *out, struct tbd_reader events)
{
    size_t most = count_addresses(events);
    struct tbd_message head;
    const uint8_t *payload;

    *out = (struct tbd_stops_pages){ 0 };
    if (!most)
        return true;
    out->address = malloc(most * sizeof(*out->address));
    if (!out->address)
        return false;
    while ((payload = tbd_stops_next(&events, &head))) {
        size_t count = head.kind == TBD_MSG_READ_PAGES ? head.bytes / sizeof(uint64_t) : 0;

        if (count)
            memcpy(out->address + out->count, payload, count * sizeof(uint64_t));
        out->count += count;
    }
    qsort(out->address, out->count, sizeof(*out->address), tbd_compare_words);
    return true;
}

void tbd_stops_pages_free(struct tbd_stops_pages *pages)
{
    free(pages->address);
    *pages = (struct tbd_stops_pages){ 0 };
}

bool tbd_stops_pages_have(const struct tbd_stops_pages *pages, const uint8_t *page)
{
    uint64_t address;

    memcpy(&address, page, sizeof(address));
    return pages->count && bsearch(&address, pages->address, pages->count, sizeof(address),
                                   tbd_compare_words) != NULL;
}
