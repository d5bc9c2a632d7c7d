// SPDX-License-Identifier: MIT
/* pagemap.h - which pages exist: /proc/self/pagemap.  Contexts: BOOT, APP. */
#ifndef TBD_HOOKS_PAGEMAP_H
#define TBD_HOOKS_PAGEMAP_H

#include "format/stream/messages.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tbd_pagemap {
    int fd; /* < 0: the file cannot be read, every page counts as private */
};

void tbd_pagemap_open(struct tbd_pagemap *map);
/* Another process' map. */
void tbd_pagemap_open_of(struct tbd_pagemap *map, int32_t pid);
void tbd_pagemap_close(struct tbd_pagemap *map);

/* One page's 64 bits, as the kernel documents them; false if they cannot be read. */
bool tbd_pagemap_state(const struct tbd_pagemap *map, uint64_t address, uint64_t *out);

/* The first pages in [start, end) that exist, at least; false: there are none.  Where the kernel does not tell (before
 * Linux 6.7), or the file cannot be read, it is the whole range. */
bool tbd_pagemap_next(const struct tbd_pagemap *map, uint64_t start, uint64_t end,
                      struct tbd_range *out);

enum tbd_page_kind {
    /* pages that exist and belong to the process: anonymous ones, and written ones of private
     * mappings */
    TBD_PAGES_PRIVATE,
    /* those of them that no other process shares: after a fork, the pages written since */
    TBD_PAGES_UNSHARED,
};

typedef void (*tbd_page_visitor)(void *context, uint64_t address);
/* Calls `visit` for every page of that kind in [start, end). */
void tbd_pagemap_visit(const struct tbd_pagemap *map, enum tbd_page_kind kind, uint64_t start,
                       uint64_t end, tbd_page_visitor visit, void *context);

/* Calls `visit` for every page in [start, end) that was private in `before` and has gone from `now`: it is not there,
 * has its file's contents, or zeros that nobody has written (from Linux 6.7 on). */
void tbd_pagemap_visit_gone(const struct tbd_pagemap *before, const struct tbd_pagemap *now,
                            uint64_t start, uint64_t end, tbd_page_visitor visit, void *context);

#endif
