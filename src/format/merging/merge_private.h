// SPDX-License-Identifier: MIT
/* merge_private.h - a merge in work (merge.c, merge_summaries.c) */
#ifndef TBD_FORMAT_MERGE_PRIVATE_H
#define TBD_FORMAT_MERGE_PRIVATE_H

#include "format/merging/merge.h"
#include "format/files/page_numbers.h"
#include "format/window/window.h"

struct tbd_merge_part {
    struct tbd_window *window; /* owned, until the merged window inherits it */
    uint64_t events;           /* 0: not known (level 1) */
    uint64_t events_before;
};

struct tbd_merge {
    struct tbd_trace *trace;
    uint32_t first, count;
    struct tbd_merge_part *parts;
    struct tbd_disk_shift *shifts;
    struct tbd_window *out;
    uint32_t loading; /* a part; later parts are loaded already */
    /* pages that the loaded parts modified: the first part that did */
    struct tbd_page_numbers later;
};

/* Each fills in its field of m->out from all parts, and may destroy the parts' own.  False: no
 * memory. */
bool tbd_merge_read_pages(struct tbd_merge *m);
bool tbd_merge_words(struct tbd_merge *m);
bool tbd_merge_blocks(struct tbd_merge *m);

#endif
