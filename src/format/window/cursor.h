// SPDX-License-Identifier: MIT
/* cursor.h - walking a window's events in order
 *
 * The cursor stands on one event: a block entry, an op of a block, or a message.
 * Order: a block's entry, its ops in program order, then messages that follow it. */
#ifndef TBD_FORMAT_CURSOR_H
#define TBD_FORMAT_CURSOR_H

#include "base/copy_once.h"
#include "format/window/blocks.h"
#include "format/window/window.h"

enum tbd_cursor_kind { TBD_AT_END = 0, TBD_AT_BLOCK, TBD_AT_OP, TBD_AT_MESSAGE };

struct tbd_cursor {
    const struct tbd_window *window;
    enum tbd_cursor_kind kind;
    uint32_t index; /* number of this event within the window, from 0 */
    uint64_t time;  /* absolute: of the current block */
    uint32_t id;    /* current block's id; 0 before the first */
    const struct tbd_block *block;
    const struct tbd_op *op;           /* TBD_AT_OP */
    const uint8_t *record;             /* the block's operands */
    const struct tbd_message *message; /* TBD_AT_MESSAGE; may be unaligned */
    uint32_t thread;   /* whose event it is; a switch is an event of the new thread */
    uint64_t began;    /* TBD_AT_MESSAGE: time of the block it belongs to.  Other than
                                  `time` where the thread waited in a system call, and `block`,
                                  `record` are another thread's then */
    uint32_t op_limit; /* how many of the block's ops happened: fewer than def.op_count only if a
                        * fault left it in the middle */
    uint8_t
        passes; /* bits 1 << enum tbd_op_kind: tbd_cursor_next() passes over such ops; set by the
                        * caller after the first one */
    /* private */
    size_t entry;   /* of the current block or message */
    size_t operand; /* of its record or message */
    uint32_t op_index;
    uint64_t next_time;
};
void tbd_cursor_first(const struct tbd_window *window, struct tbd_cursor *out);
bool tbd_cursor_next(struct tbd_cursor *cursor); /* false at the end */
/* Moves to the entry of the block with absolute time `time`, or to the end if the window has no
 * such time.  Cheap: starts from the nearest checkpoint made at load. */
bool tbd_cursor_seek(const struct tbd_window *window, uint64_t time, struct tbd_cursor *out);
/* Moves to the event with this index (as in tbd_word_summary.last), or to the end. */
bool tbd_cursor_seek_index(const struct tbd_window *window, uint32_t index, struct tbd_cursor *out);
/* Moves past all ops of the current block, to the next block entry or message.  False at the
 * end. */
bool tbd_cursor_skip_block(struct tbd_cursor *cursor);
/* The instruction before which the cursor's block was left; UINT64_MAX if it was not. */
uint64_t tbd_cursor_insn_limit(const struct tbd_cursor *cursor);
/* Which blocks can be skipped. */
struct tbd_pass {
    const uint8_t *blocks; /* by id: 0 = nothing is wanted of it; NULL: of no block */
    uint8_t accesses;      /* of other blocks, only TBD_OP_STOREs (or LOADs) that touch [start, end)
                            * are wanted; 0: anything */
    uint64_t start, end;
    uint64_t watch_start, watch_end; /* stores of any block that touch this are wanted; empty:
                                      * none */
    bool calls;                      /* function entries and exits of any block are wanted */
    uint64_t until;                  /* stops after this time */
};
/* Skips such blocks quickly, from a block's entry on: to a block of which something may be wanted,
 * or before a message or the window's end. */
void tbd_cursor_pass(struct tbd_cursor *cursor, const struct tbd_pass *pass);
/* Address of a STORE or LOAD op the cursor is on. */
static inline uint64_t tbd_cursor_address(const struct tbd_cursor *c)
{
    uint64_t base = 0;

    if (c->op->base != TBD_BASE_NONE)
        base = tbd_read_once_u64(c->record + c->op->base);
    return base + (uint64_t)c->op->add;
}

#endif
