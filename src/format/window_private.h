// SPDX-License-Identifier: MIT
/* window_private.h - what window.c, cursor.c and the window reader share */
#ifndef TBD_FORMAT_WINDOW_PRIVATE_H
#define TBD_FORMAT_WINDOW_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

#define TBD_PAGE_BYTES 4096u
#define TBD_CHECKPOINT_ENTRIES 512u

/* A block entry that a cursor can start from. */
struct tbd_checkpoint {
    size_t entry;
    size_t operand;
    uint64_t time;  /* absolute */
    uint32_t index; /* of its event */
    uint32_t thread; /* that enters it */
};

struct tbd_window_private {
    void **owned;
    size_t owned_count;
    size_t owned_capacity;
    struct tbd_checkpoint *checkpoints;
    size_t checkpoint_count;
    size_t checkpoint_capacity;
};

#endif
