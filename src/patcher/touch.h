// SPDX-License-Identifier: MIT
/* touch.h - which accesses of a block mark which pages in the touch map
 *
 * Accesses of one block whose addresses differ by constants, all within a page's length, share
 * marks: the first of them marks the page of the lowest byte read (readers of the map count the
 * next page, too: base/layout.h), and the pages of the lowest and the highest byte written. */
#ifndef TBD_PATCHER_TOUCH_H
#define TBD_PATCHER_TOUCH_H

#include "patcher/decode.h"

/* An address in terms of values that registers had somewhere in the block: two addresses with the
 * same roots and scale differ by the difference of `add`. */
struct tbd_address {
    uint32_t base_root;  /* 0 = none */
    uint32_t index_root; /* 0 = none */
    int64_t add;
    uint8_t scale;
};

enum tbd_mark {
    TBD_MARK_READ = 1,
    TBD_MARK_LOW = 2,  /* lowest byte written */
    TBD_MARK_HIGH = 4, /* highest byte written */
};

/* The marks of one access: bytes relative to its own address. */
struct tbd_touch {
    uint8_t marks; /* TBD_MARK_* */
    int16_t read_at;
    int16_t low_at;
    int16_t high_at;
};

struct tbd_bracket {
    struct tbd_address first; /* of the access that makes the marks */
    uint16_t insn;            /* its instruction */
    uint8_t access;
    bool is_constant;
    bool may_straddle;           /* it may write two pages */
    int64_t read_low, read_high; /* bytes read, relative to `first`; read_high < read_low: none */
    int64_t write_low, write_high;
};

#define TBD_MAX_BRACKETS (2u * TBD_BLOCK_MAX_INSNS)

struct tbd_touch_plan {
    bool odd_stack; /* rsp need not be a multiple of 8 here */
    uint32_t count;
    struct tbd_bracket bracket[TBD_MAX_BRACKETS];
};

/* Adds the next access in program order.  `shares`: `address` is valid. */
void tbd_touch_add(struct tbd_touch_plan *plan, const struct tbd_access *a, uint32_t insn,
                   uint8_t access, const struct tbd_address *address, bool shares);
/* Writes the result: touch[insn][access]. */
void tbd_touch_finish(const struct tbd_touch_plan *plan,
                      struct tbd_touch touch[TBD_BLOCK_MAX_INSNS][TBD_INSN_MAX_ACCESSES]);

static inline bool tbd_address_same_roots(const struct tbd_address *a, const struct tbd_address *b)
{
    return a->base_root == b->base_root && a->index_root == b->index_root && a->scale == b->scale;
}

#endif
