// SPDX-License-Identifier: MIT
/* pagemap.h - which pages exist: /proc/self/pagemap.  Contexts: BOOT, APP. */
#ifndef TBD_HOOKS_PAGEMAP_H
#define TBD_HOOKS_PAGEMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tbd_pagemap {
    int fd; /* < 0: the file cannot be read, every page counts as private */
};

void tbd_pagemap_open(struct tbd_pagemap *map);
void tbd_pagemap_close(struct tbd_pagemap *map);

typedef void (*tbd_page_visitor)(void *context, uint64_t address);
/* Calls `visit` for every page of [start, end) that exists and is the process's own: anonymous, or a
 * private mapping's page that was written. */
void tbd_pagemap_visit_private(const struct tbd_pagemap *map, uint64_t start, uint64_t end,
                               tbd_page_visitor visit, void *context);

#endif
