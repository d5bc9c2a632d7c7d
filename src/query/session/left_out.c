// SPDX-License-Identifier: MIT
/* left_out.c - see left_out.h
 *
 * LEFT_OUT-1  `windows` is ascending, and holds each window once. */
#include "query/session/left_out.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/binary_search.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void say_why(struct tbd_left_out *left, uint32_t window, const char *why)
{
    if (why[0] == '\0' || (left->why[0] != '\0' && window >= left->first))
        return;
    left->first = window;
    snprintf(left->why, sizeof(left->why), "%s", why);
}

/* Keeps LEFT_OUT-1. */
void tbd_left_out_add(struct tbd_left_out *left, uint32_t window, const char *why)
{
    size_t at = TBD_COUNT_BEFORE(i, left->count, left->windows[i] < window);

    say_why(left, window, why);
    if (at < left->count && left->windows[at] == window)
        return;
    if (!tbd_array_grow(&left->windows, left->count, &left->capacity, sizeof(*left->windows))) {
        left->has_unlisted = true;
        return;
    }
    memmove(left->windows + at + 1, left->windows + at,
            (left->count - at) * sizeof(*left->windows));
    left->windows[at] = window;
    left->count++;
    TBD_INVARIANT("LEFT_OUT-1", (at == 0 || left->windows[at - 1] < window) &&
                                    (at + 1 == left->count || left->windows[at + 1] > window));
}

void tbd_left_out_merge(struct tbd_left_out *left, const struct tbd_left_out *from)
{
    for (size_t i = 0; i < from->count; i++)
        tbd_left_out_add(left, from->windows[i], from->windows[i] == from->first ? from->why : "");
    left->has_unlisted |= from->has_unlisted;
    left->has_lost_end |= from->has_lost_end;
}

void tbd_left_out_keep(struct tbd_left_out *left, uint32_t first, uint32_t last)
{
    size_t used = 0;

    for (size_t i = 0; i < left->count; i++) {
        if (left->windows[i] >= first && left->windows[i] <= last)
            left->windows[used++] = left->windows[i];
    }
    left->count = used;
    if (left->first < first || left->first > last)
        left->why[0] = '\0';
}

/* The last of the consecutive windows from windows[i] on. */
static size_t end_of_row(const struct tbd_left_out *left, size_t i)
{
    while (i + 1 < left->count && left->windows[i + 1] == left->windows[i] + 1)
        i++;
    return i;
}

void tbd_left_out_print(const struct tbd_left_out *left, FILE *out)
{
    for (size_t i = 0, last; i < left->count; i = last + 1) {
        last = end_of_row(left, i);
        fprintf(out, "%s%" PRIu32, i == 0 ? "" : ", ", left->windows[i]);
        if (last != i)
            fprintf(out, "-%" PRIu32, left->windows[last]);
    }
}

void tbd_left_out_clear(struct tbd_left_out *left)
{
    free(left->windows);
    *left = (struct tbd_left_out){ .windows = NULL };
}
