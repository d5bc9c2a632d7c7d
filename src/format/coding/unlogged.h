// SPDX-License-Identifier: MIT
/* unlogged.h - messages among a window's events that are in no log (tbd_message_is_logged()), as coded records have them
 *
 * They lie after the last segment, one after the other, and after them how many bytes they take (8 bytes).  A window that has
 * none has nothing there: its entries say so. */
#ifndef TBD_FORMAT_UNLOGGED_H
#define TBD_FORMAT_UNLOGGED_H

#include "base/array.h"
#include "format/coding/coding.h"
#include "format/stream/stream.h"

#include <stdbool.h>

/* All zeros before the first one. */
struct tbd_unlogged {
    const uint8_t *at, *end;
};

/* Are any among the entries?  Then nothing can be read of a window without its records. */
bool tbd_unlogged_occur(const uint32_t *entries, size_t count);

/* Appends all that were collected. */
void tbd_unlogged_put(struct tbd_buffer *out, const struct tbd_buffer *messages);

/* The next one, which must be of this kind; before the first one `in`, with segments, loses them at its end.  NULL: there is none, or
 * it is impossible. */
const struct tbd_message *tbd_unlogged_next(struct tbd_unlogged *unlogged, struct tbd_reader *in,
                                            uint32_t kind);
static inline bool tbd_unlogged_are_over(const struct tbd_unlogged *unlogged)
{
    return unlogged->at == unlogged->end;
}

#endif
