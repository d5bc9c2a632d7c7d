// SPDX-License-Identifier: MIT
/* stops_pages.h - pages that play has as modified in a window, and its replay has not written */
#ifndef TBD_REPLAY_NATIVE_STOPS_PAGES_H
#define TBD_REPLAY_NATIVE_STOPS_PAGES_H

#include "format/files/codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tbd_stops_pages {
    uint64_t *address; /* owned; in order */
    size_t count;
};

/* Those of the messages of one window's replay (stops_window.h). False: no memory, *out is empty. */
bool tbd_stops_pages_find(struct tbd_stops_pages *out, struct tbd_reader events);
void tbd_stops_pages_free(struct tbd_stops_pages *pages);

/* Is the address at `page`, 8 bytes, one of them? */
bool tbd_stops_pages_have(const struct tbd_stops_pages *pages, const uint8_t *page);

#endif
