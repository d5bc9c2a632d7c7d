// SPDX-License-Identifier: MIT
/* window_private.h - what window.c, cursor.c and the window reader share */
#ifndef TBD_FORMAT_WINDOW_PRIVATE_H
#define TBD_FORMAT_WINDOW_PRIVATE_H

#include "format/window/window.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TBD_PAGE_BYTES 4096u
/* What a window owns, and how it is given back: free(), tbd_large_buffer_give(), ... */
struct tbd_owned {
    void *memory;
    void (*release)(void *memory);
};

/* Where an entry of a picked window comes from (pick.h). */
struct tbd_picked_place {
    const uint8_t *at; /* the record, or the message */
    uint32_t time;     /* relative: of the block, or of the next one */
    uint32_t thread;   /* that the entry finds in control */
    bool has_ops;      /* the block's ops are there */
};

struct tbd_window_private {
    struct tbd_picked_place *places; /* by entry; NULL: not a picked window */
    struct tbd_owned *owned;
    size_t owned_count;
    size_t owned_capacity;
    struct tbd_checkpoint *checkpoints;
    size_t checkpoint_count;
    size_t checkpoint_capacity;
    uint32_t *last_stores; /* by word of the summaries; owned; NULL until somebody asked */
};

/* Of each of the window's words (level 1, with events): 1 + the index of an event behind which no
 * other stores to it.  Borrowed from the window; NULL without memory. */
const uint32_t *tbd_window_last_stores(const struct tbd_window *window);

#endif
