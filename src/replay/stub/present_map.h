// SPDX-License-Identifier: MIT
/* present_map.h - which pages of the program are mapped in a replay process
 *
 * A bit for each page, at TBD_PRESENT_BASE (base/layout.h), where tbd_memory_clear_process() maps
 * zeros.  Ranges are page aligned.  Contexts: APP and SIG. */
#ifndef TBD_REPLAY_PRESENT_MAP_H
#define TBD_REPLAY_PRESENT_MAP_H

#include "format/stream/messages.h"

#include <stdbool.h>
#include <stdint.h>

bool tbd_present_has(uint64_t address);
void tbd_present_set(uint64_t start, uint64_t end);
void tbd_present_clear(uint64_t start, uint64_t end);
/* The end of the run of pages from `at` on that are all present, or all absent. */
uint64_t tbd_present_run_end(uint64_t at, uint64_t end);
/* As tbd_marked_cells (hooks/memory/marked_pages.h): cells of pages that have been present.  "hidden" because otherwise
 * its address needs a table. */
__attribute__((visibility("hidden"))) bool tbd_present_cells(uint64_t start, uint64_t end,
                                                             struct tbd_range *out);

#endif
