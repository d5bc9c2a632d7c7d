// SPDX-License-Identifier: MIT
/* expr_keep.h - values that a question wants beside each of its events
 *
 * A kept expression is a part of the condition that is always true where it has a value: so the search finds the
 * registers and the memory that it needs as for any other part.  Evaluating it puts its value into a record.
 *
 * A record is a block of bytes that can be copied: `count` values, then the texts to which they point. A
 * variable that does not exist at the event is like one in any other condition: the event does not match. */
#ifndef TBD_QUERY_EXPR_KEEP_H
#define TBD_QUERY_EXPR_KEEP_H

#include "query/condition/expr.h"

#define TBD_KEPT_MAX       16u
#define TBD_KEPT_TEXT_MAX  (TBD_EXPR_MATCH_SLOTS * 8) /* of a string; a longer one is cut */
#define TBD_KEPT_BYTES_MAX (TBD_KEPT_MAX * (sizeof(struct tbd_kept_value) + TBD_KEPT_TEXT_MAX))

enum tbd_kept_state {
    TBD_KEPT_NONE = 0,  /* the memory is not mapped, or the trace does not have it */
    TBD_KEPT_OPTIMIZED, /* the compiler did not keep it here */
    TBD_KEPT_NUMBER,
    TBD_KEPT_REAL, /* the bits of a double */
    TBD_KEPT_TEXT,
    TBD_KEPT_FRAMES, /* as a text, of 8-byte addresses: the event's own, then in the calls around it; `v`: there are more */
};

struct tbd_kept_value {
    uint64_t v;
    uint32_t text;  /* TEXT, FRAMES: its offset in the record */
    uint16_t bytes; /* TEXT, FRAMES: its length; no NUL follows */
    uint8_t state;  /* enum tbd_kept_state */
};

/* The record of one event, while it is evaluated. */
struct tbd_kept {
    uint32_t count; /* of kept expressions */
    size_t used;
    bool is_final; /* what is still unknown never will be known */
    union {
        struct tbd_kept_value values[TBD_KEPT_MAX];
        uint8_t bytes[TBD_KEPT_BYTES_MAX];
    } record;
};

/* The expression `expr`, kept as value `number`; as a text, if it is one.  Takes `expr`, also on failure: NULL. */
struct tbd_expr *tbd_expr_keep(struct tbd_expr *expr, uint32_t number, bool as_text);
/* Begins a new record. */
void tbd_kept_reset(struct tbd_kept *kept);
/* Bytes of a record. */
size_t tbd_kept_bytes(const struct tbd_kept_value *record, uint32_t count);
/* A copy, which the caller frees; NULL without memory. */
struct tbd_kept_value *tbd_kept_copy(const struct tbd_kept_value *record, uint32_t count);

/* The last value of the record becomes the frames, as many as fit, innermost first. */
void tbd_kept_take_frames(struct tbd_kept *kept, const uint64_t *pcs, size_t count);
/* For expr_eval.c: takes a value, or a text; both are true. */
struct tbd_value tbd_kept_take(struct tbd_kept *kept, const struct tbd_expr_node *node,
                               struct tbd_value value);
struct tbd_value tbd_kept_take_text(struct tbd_kept *kept, const struct tbd_expr_node *node,
                                    struct tbd_value state, const char *text, size_t bytes);

#endif
