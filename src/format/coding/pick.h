// SPDX-License-Identifier: MIT
/* pick.h - windows of which only some blocks' events are there
 *
 * Most questions want the events of few blocks.  A picked window has the entries of these, and
 * all messages with the block entries on both sides of them; a cursor walks it as it does the
 * whole one, and times, threads and ops are the same (event indices are not).  It is made of a
 * whole window, or of a window's files without putting the records of all others where they
 * belong.
 *
 * It is for walks alone: nothing reads memory from it. */
#ifndef TBD_FORMAT_PICK_H
#define TBD_FORMAT_PICK_H

#include "base/status.h"
#include "format/window/window.h"

#define TBD_PICK_ENTRIES 1u /* the block's entries; nobody asks for its ops */
#define TBD_PICK_OPS     2u /* with its ops */
#define TBD_PICK_ENTERED 4u /* entries that a call before leads to, and the call with its ops */

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

/* Works for one window after the other.  One thread. */
struct tbd_picker;
struct tbd_picker *tbd_picker_new(const struct tbd_pick *pick); /* NULL without memory */
void tbd_picker_free(struct tbd_picker *picker);                /* NULL is fine */

/* Of a window with all events, which must live longer than what is made of it.  TBD_NOTFOUND:
 * too much is wanted for this to save anything.  *out is owned by the caller: tbd_window_free(). */
TBD_MUST_CHECK enum tbd_status
tbd_picker_pick(struct tbd_picker *picker, const struct tbd_window *from, struct tbd_window **out);

#endif
