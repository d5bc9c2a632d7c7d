// SPDX-License-Identifier: MIT
/* window_state.h - shared by the files that make, pick and walk windows */
#ifndef TBD_FORMAT_WINDOW_STATE_H
#define TBD_FORMAT_WINDOW_STATE_H

#include "format/window/window_make.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory that a window owns, and how it is freed: free(), tbd_large_buffer_give(), ... */
struct tbd_owned {
    void *memory;
    void (*release)(void *memory);
};

/* Where an entry of a picked window comes from (pick.h). */
struct tbd_picked_place {
    const uint8_t *at; /* the record, or the message */
    uint32_t time;     /* relative: of the block, or of the next one */
    uint32_t thread;   /* in control at the entry */
    bool has_ops;      /* the block's ops are there */
};

struct tbd_window_state {
    struct tbd_picked_place
        *places; /* owned, a large buffer: by entry; NULL: not a picked window */
    struct tbd_owned *owned;
    size_t owned_count;
    size_t owned_capacity;
    struct tbd_checkpoint *checkpoints;
    size_t checkpoint_count;
    size_t checkpoint_capacity;
    uint32_t *last_stores; /* by word of the summaries; owned; NULL until first used */
};

#endif
