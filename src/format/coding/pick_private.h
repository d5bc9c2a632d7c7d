// SPDX-License-Identifier: MIT
/* pick_private.h - shared by picking from whole windows (pick.c) and from coded records
 * (pick_columns.c) */
#ifndef TBD_FORMAT_PICK_PRIVATE_H
#define TBD_FORMAT_PICK_PRIVATE_H

#include "format/coding/coding.h"
#include "format/coding/pick.h"
#include "format/window/window_state.h"

/* Bits of a block: */
#define TBD_LOOK_KNOWN   1u  /* it was met */
#define TBD_LOOK_ENTRIES 2u  /* all entries are wanted, */
#define TBD_LOOK_OPS     4u  /* with their ops */
#define TBD_LOOK_TEST    8u  /* entries whose accesses touch a range are wanted, with their ops */
#define TBD_LOOK_CALL    16u /* entries that a wanted block may follow are wanted, with their ops */
#define TBD_LOOK_TARGET  32u /* entries that follow a call are wanted */
#define TBD_LOOK_LED     64u /* all entries are wanted, and those before them */
#define TBD_LOOK_LEADING 128u /* all entries are wanted, and those after them */

struct tbd_look {
    uint16_t operand_bytes;
    uint8_t what;
    uint8_t now; /* pick_columns.c: the same for the current segment */
};

/* A test of an access with a variable address: its base must be in [low, low + span). */
struct tbd_pick_test {
    uint32_t base; /* offset in the record */
    uint64_t low, span;
};

struct tbd_pick_tests {
    uint32_t first, count; /* in `tests` */
};

struct tbd_picker {
    struct tbd_pick pick;
    uint8_t wanted;                  /* of all blocks */
    struct tbd_block_table *table;   /* of the last window; holds a reference */
    struct tbd_look *looks;          /* by id */
    struct tbd_pick_tests *tests_of; /* by id */
    size_t ids;
    struct tbd_pick_test *tests;
    size_t test_count, test_capacity;
    struct tbd_pick_columns *columns; /* NULL until coded records come */
    /* the current window */
    const uint32_t *from; /* its entries */
    size_t from_count, most;
    struct tbd_window *out;
    uint32_t *entries;
    struct tbd_picked_place *places;
    size_t count, capacity;
    size_t last;    /* entry of `from` that was picked last, + 1 */
    bool is_beside; /* the entry before is a message, a call whose target decides, or leading */
    uint32_t thread;
    enum tbd_status status;
};

/* Begin and end the picking from a window; the end fills `out`. */
TBD_MUST_CHECK enum tbd_status tbd_picker_begin(struct tbd_picker *p, struct tbd_window *out,
                                                const uint32_t *entries, size_t count);
TBD_MUST_CHECK enum tbd_status tbd_picker_finish(struct tbd_picker *p, uint32_t time);

/* NULL: no block of the table (or, with p->status, no memory). */
const struct tbd_look *tbd_picker_meet(struct tbd_picker *p, uint32_t id);
static inline const struct tbd_look *tbd_picker_look(struct tbd_picker *p, uint32_t id)
{
    return id < p->ids && p->looks[id].what ? &p->looks[id] : tbd_picker_meet(p, id);
}

/* Picks entry `i`.  `at`: its record (NULL: without ops), borrowed by the window. */
void tbd_picker_put(struct tbd_picker *p, size_t i, uint32_t time, const uint8_t *at);
/* Entry `i` is of a block with these bits: picks it if `at` is not NULL, or if it is wanted without
 * ops. */
void tbd_picker_decide(struct tbd_picker *p, size_t i, uint8_t what, uint32_t time,
                       const uint8_t *at);
/* Entry `i` is a message: picks it, and the block before it. */
void tbd_picker_put_message(struct tbd_picker *p, size_t i, uint32_t time,
                            const struct tbd_message *message);

/* May the call at the end of entry `i` lead to a wanted block? */
bool tbd_picker_leads(struct tbd_picker *p, size_t i);
static inline bool tbd_picker_was_called(struct tbd_picker *p, size_t i)
{
    const struct tbd_look *before =
        i && !(p->from[i - 1] & TBD_ENTRY_MESSAGE) ? tbd_picker_look(p, p->from[i - 1]) : NULL;

    return before && before->what & TBD_LOOK_CALL;
}

/* Does an access with a variable address in this record touch a range? */
static inline bool tbd_picker_touches(const struct tbd_picker *p, uint32_t id,
                                      const uint8_t *record)
{
    const struct tbd_pick_test *test = &p->tests[p->tests_of[id].first];
    uint64_t base;

    for (uint32_t n = p->tests_of[id].count; n; n--, test++) {
        memcpy(&base, record + test->base, sizeof(base));
        if (base - test->low < test->span)
            return true;
    }
    return false;
}

/* Is more wanted of any block than its entries? */
bool tbd_picker_needs_records(const struct tbd_picker *p);

void tbd_pick_columns_free(struct tbd_pick_columns *columns);
/* The block table has changed: forgets what was known of blocks. */
void tbd_pick_columns_forget(struct tbd_picker *p);
/* Fills `window`, which has everything except events, from its entries and coded records (NULL
 * where they are not needed). */
TBD_MUST_CHECK enum tbd_status tbd_picker_decode(struct tbd_picker *p, struct tbd_window *window,
                                                 const uint32_t *entries, const uint8_t *content,
                                                 size_t bytes);

#endif
