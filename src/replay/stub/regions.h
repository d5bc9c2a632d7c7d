// SPDX-License-Identifier: MIT
/* regions.h - the program's mappings inside a replay process, as a sorted table
 *
 * Pure bookkeeping, no system calls: also compiled for unit tests.  Contexts: APP, and SIG for reading. */
#ifndef TBD_REPLAY_REGIONS_H
#define TBD_REPLAY_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tbd_replay_region {
    uint64_t start, end;
    uint64_t made;  /* relative time of the mapping; 0 = before the window */
    uint32_t prot;  /* PROT_* */
    uint32_t flags; /* TBD_PLAN_REGION_* */
};

struct tbd_replay_regions {
    struct tbd_replay_region *table; /* sorted by start, no overlap; borrowed for ever */
    size_t count;
    size_t capacity;
};

/* All ranges are page aligned and not empty.  False when the table is full (nothing changed then). */
bool tbd_replay_regions_add(struct tbd_replay_regions *regions, struct tbd_replay_region added);
bool tbd_replay_regions_remove(struct tbd_replay_regions *regions, uint64_t start, uint64_t end);
/* Changes the protection of what is mapped in [start, end). */
bool tbd_replay_regions_protect(struct tbd_replay_regions *regions, uint64_t start, uint64_t end,
                                uint32_t prot);
/* Region that holds `address`, NULL if none. */
struct tbd_replay_region *tbd_replay_regions_find(const struct tbd_replay_regions *regions,
                                                  uint64_t address);
/* First region that ends behind `address`: an index, or count. */
size_t tbd_replay_regions_lower(const struct tbd_replay_regions *regions, uint64_t address);

#endif
