// SPDX-License-Identifier: MIT
/* window_private.h - what the files share that make, pick and walk windows */
#ifndef TBD_FORMAT_WINDOW_PRIVATE_H
#define TBD_FORMAT_WINDOW_PRIVATE_H

#include "format/window/window_make.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
