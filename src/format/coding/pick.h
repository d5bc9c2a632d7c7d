// SPDX-License-Identifier: MIT
/* pick.h - windows with the events of only some blocks
 *
 * Most questions want the events of few blocks.  A picked window has the entries of these blocks,
 * and all messages with the block entries on both sides of them.  A cursor walks it like the whole
 * window; times, threads and ops are the same, event indices are not.  It is made from a whole
 * window, or from a window's files without placing the records of other blocks.
 *
 * It is only for walks: memory cannot be read from it. */
#ifndef TBD_FORMAT_PICK_H
#define TBD_FORMAT_PICK_H

#include "base/status.h"
#include "format/window/window.h"

#define TBD_PICK_ENTRIES 1u  /* the block's entries, without its ops */
#define TBD_PICK_OPS     2u  /* with its ops */
#define TBD_PICK_ENTERED 4u  /* entries entered by a call, and that call with its ops */
#define TBD_PICK_LED     8u  /* the block's entries, and the block entries before them */
#define TBD_PICK_LEADING 16u /* the block's entries, and the entries after them */

#define TBD_PICK_RANGES 8u

struct tbd_pick_range {
    uint64_t start, end;
};

/* What is wanted. */
struct tbd_pick {
    const uint8_t *blocks; /* by id: TBD_PICK_*; borrowed until the picker is freed */
    uint32_t block_count;
    bool calls;           /* all blocks with function entries and exits, with their ops */
    uint32_t range_count; /* blocks with stores that touch these, with their ops */
    struct tbd_pick_range ranges[TBD_PICK_RANGES];
};

/* Takes one window after the other.  One thread. */
struct tbd_picker;
struct tbd_picker *tbd_picker_new(const struct tbd_pick *pick); /* NULL without memory */
void tbd_picker_free(struct tbd_picker *picker);                /* NULL is fine */

/* Picks from a window with all events, which must outlive *out.  TBD_NOTFOUND: too much is wanted
 * for picking to save time.  *out is owned by the caller: tbd_window_free(). */
TBD_MUST_CHECK enum tbd_status
tbd_picker_pick(struct tbd_picker *picker, const struct tbd_window *from, struct tbd_window **out);

#endif
