// SPDX-License-Identifier: MIT
/* undo.h - contents of pages before a window used them for the first time */
#ifndef TBD_ORGANIZER_UNDO_H
#define TBD_ORGANIZER_UNDO_H

#include "base/binary_search.h"
#include "organizer/build.h"

/* A page message, until it is known whether the window goes on after it. */
struct tbd_page_note {
    uint64_t address;
    uint64_t flags;
    const uint8_t *bytes; /* in the raw operands, or in the window's memory; NULL: it came packed */
    const uint8_t *packed; /* then: its frame */
    uint32_t packed_bytes;
    bool is_difference;
    uint64_t time;
    uint32_t order;
    bool at_end;
};

/* A block that was left in the middle: only the events of instructions 0 .. limit-1 in its record
 * happened. */
struct cut_block {
    uint32_t index; /* of its entry's event; ascending */
    uint32_t limit;
};

/* Was the block whose entry is event `index` left before this instruction? */
static inline bool tbd_is_cut(const struct cut_block *cuts, size_t count, uint64_t index,
                              uint32_t insn)
{
    size_t found = TBD_COUNT_BEFORE(i, count, cuts[i].index < index);

    return found < count && cuts[found].index == index && insn >= cuts[found].limit;
}

/* The window's page messages, its mapping messages in order, and blocks that were cut. */
struct tbd_page_notes {
    const struct tbd_page_note *pages;
    size_t count;
    const struct tbd_side_message *side;
    size_t side_count;
    const struct cut_block *cuts;
    size_t cut_count;
    uint64_t events; /* of the window */
};

/* Makes window->first from the pages with TBD_PAGE_FIRST; the window's events and summaries must be
 * complete.  False without memory. */
bool tbd_undo_first_contents(struct tbd_window *window, const struct tbd_page_notes *notes);

#endif
