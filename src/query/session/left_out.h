// SPDX-License-Identifier: MIT
/* left_out.h - the windows that are missing from an answer
 *
 * A window whose files are damaged, whose replay differs from play, or that cannot be replayed is
 * left out of a search, and the others still answer. The user must know it: everything that the
 * answer shows is true, but it may be incomplete.  One thread at a time. */
#ifndef TBD_QUERY_LEFT_OUT_H
#define TBD_QUERY_LEFT_OUT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct tbd_left_out {
    uint32_t *windows; /* owned; ascending */
    size_t count, capacity;
    bool has_unlisted; /* there are more windows, for which there was no memory */
    bool has_lost_end; /* also, the events after the last window are lost */
    uint32_t first;    /* the window to which `why` belongs: the first one */
    char why[640];
};

static inline bool tbd_left_out_is_empty(const struct tbd_left_out *left)
{
    return left->count == 0 && !left->has_unlisted && !left->has_lost_end;
}

void tbd_left_out_add(struct tbd_left_out *left, uint32_t window, const char *why);
/* Adds the windows of `from`. */
void tbd_left_out_merge(struct tbd_left_out *left, const struct tbd_left_out *from);
/* Keeps only the windows from `first` to `last`, which matter to the answer. */
void tbd_left_out_keep(struct tbd_left_out *left, uint32_t first, uint32_t last);
/* "3, 7-9" */
void tbd_left_out_print(const struct tbd_left_out *left, FILE *out);
void tbd_left_out_clear(struct tbd_left_out *left);

#endif
