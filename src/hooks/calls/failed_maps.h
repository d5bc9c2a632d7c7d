// SPDX-License-Identifier: MIT
/* failed_maps.h - what mapping calls that failed have done all the same
 *
 * The kernel works from the front, mapping by mapping, and leaves what it has done when one is refused;
 * or it unmaps the target first.  Its list of mappings tells.  Context: APP. */
#ifndef TBD_HOOKS_FAILED_MAPS_H
#define TBD_HOOKS_FAILED_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/* How many bytes from `start` have this protection: as if mprotect had succeeded for them. */
uint64_t tbd_failed_protect(uint64_t start, uint64_t end, uint32_t prot);
/* The same for advice that drops contents; gives it once more to each mapping. */
uint64_t tbd_failed_advise(uint64_t start, uint64_t end, uint64_t advice);
/* Is something that the table of regions has in [start, end) not mapped any more? */
bool tbd_failed_unmapped(uint64_t start, uint64_t end);

#endif
