// SPDX-License-Identifier: MIT
/* backlink_heads.h - backlink heads: in which window a word or a block occurred last
 *
 * Segmented by page, so that it grows with the memory a program writes to.  One thread at a time;
 * windows are joined in order. */
#ifndef TBD_ORGANIZER_BACKLINK_HEADS_H
#define TBD_ORGANIZER_BACKLINK_HEADS_H

#include "format/trace/trace.h"

struct tbd_backlink_heads;
struct tbd_backlink_heads *tbd_backlink_heads_new(void); /* NULL without memory */
void tbd_backlink_heads_free(struct tbd_backlink_heads *heads);

/* Fills in `previous` of each summary, and makes `window` the latest. */
TBD_MUST_CHECK enum tbd_status tbd_backlink_heads_words(struct tbd_backlink_heads *heads,
                                                        uint32_t window,
                                                        struct tbd_word_summary *words,
                                                        size_t count);
TBD_MUST_CHECK enum tbd_status tbd_backlink_heads_blocks(struct tbd_backlink_heads *heads,
                                                         uint32_t window,
                                                         struct tbd_block_summary *blocks,
                                                         size_t count);

#endif
