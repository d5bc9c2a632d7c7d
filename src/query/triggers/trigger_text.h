// SPDX-License-Identifier: MIT
/* trigger_text.h - what a user wants dumps for: the text of the option `trigger`
 *
 *   WHAT; WHAT; ...      WHAT: PLACE [times N] [with PART ...] [if CONDITION], or signal NAME [times N] [with PART ...],
 *                              or PLACE records [EXPRESSION] [if CONDITION], or loads of RANGE (query/triggers/load_range.h)
 *
 * PLACE is a function (also module!function, function+OFFSET), FILE:LINE or 0xADDRESS, CONDITION one of tbdq's (query/condition).
 * The text is untrusted input.  Nothing here prints. */
#ifndef TBD_QUERY_TRIGGER_TEXT_H
#define TBD_QUERY_TRIGGER_TEXT_H

#include "format/probe/trigger.h"
#include "query/places/where.h"
#include "query/text/query_error.h"

struct tbd_trigger_wish {
    size_t at, end;         /* in the text */
    struct tbd_where where; /* unless it is about a signal */
    size_t condition;       /* where it begins; `end`: there is none */
    uint64_t signals;       /* as in struct tbd_trigger */
    uint32_t times;
    size_t parts, parts_end; /* names with blanks between them; the same: all */
    size_t value, value_end; /* what is recorded; the same: registers and stack alone */
    bool has_module;         /* the place names one */
    bool records;
    size_t range, range_end; /* what is loaded from; the same: it is about a place, or a signal */
};

struct tbd_trigger_wishes {
    struct tbd_trigger_wish all[TBD_TRIGGER_MAX];
    uint32_t count;
};

/* A text without words has no wishes.  On failure *error points at the wrong word. */
bool tbd_trigger_read(const char *text, struct tbd_trigger_wishes *out,
                      struct tbd_query_error *error);

#endif
