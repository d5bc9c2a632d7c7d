// SPDX-License-Identifier: MIT
/* register_notes.h - registers at the events of one window, from one replay
 *
 * A walk says which registers it misses at which instructions (sites); one replay of the window,
 * with notes at them, gives the registers at each execution (replay.h); later walks look them up,
 * in order. */
#ifndef TBD_QUERY_REGISTER_NOTES_H
#define TBD_QUERY_REGISTER_NOTES_H

#include "base/address_table.h"
#include "query/session/event.h"
#include "format/window/cursor.h"

/* Which registers are wanted where. */
struct tbd_note_sites {
    struct tbd_address_table table; /* of struct tbd_note_site, which begin with the address */
};
/* False without memory. */
bool tbd_note_sites_add(struct tbd_note_sites *sites, uint64_t pc, uint64_t registers);
void tbd_note_sites_free(struct tbd_note_sites *sites);
/* Compacts the sites and sorts them by pc for tbd_replay_notes(); after that none can be added. */
void tbd_note_sites_sort(struct tbd_note_sites *sites);

/* The registers known at an event. */
struct tbd_noted {
    struct tbd_regs regs;
    uint8_t vector[16 * 16]; /* low 16 bytes of each vector register */
    uint64_t top;            /* what is at the stack pointer */
};

struct tbd_notes {
    struct tbd_window *window; /* owned; NULL: none */
    struct tbd_cursor cursor;
    struct tbd_noted noted;
};
/* Takes a window that tbd_replay_notes() made. */
void tbd_notes_take(struct tbd_notes *notes, struct tbd_window *window);
void tbd_notes_free(struct tbd_notes *notes);
/* The registers before the event's instruction, if they were wanted there; borrowed until the next
 * call. NULL: there is no note. Fast while positions ascend. */
const struct tbd_noted *tbd_notes_at(struct tbd_notes *notes, const struct tbd_event *event);
/* Takes what a note has of the registers op->add. */
void tbd_noted_unpack(struct tbd_noted *noted, const struct tbd_op *op, const uint8_t *at);

#endif
