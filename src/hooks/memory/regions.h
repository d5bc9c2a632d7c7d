// SPDX-License-Identifier: MIT
/* regions.h - the program's mappings during play
 *
 * A sorted table without overlaps, updated at every call that changes mappings.  It does not
 * contain the engine's own ranges and patch areas (tbd_regions_is_free() asks the kernel about
 * patch areas).  Contexts: BOOT, APP; tbd_regions_find() also SIG. */
#ifndef TBD_HOOKS_REGIONS_H
#define TBD_HOOKS_REGIONS_H

#include "base/arena.h"
#include "base/linux.h"
#include "format/stream/stream.h"

struct tbd_mapped_region {
    struct tbd_msg_region map;
    const char *path; /* "" = anonymous; lives as long as the table */
};

struct tbd_region_path {
    struct tbd_region_path *next; /* with the same hash */
    char text[];
};
#define TBD_REGION_PATHS 1024u

struct tbd_regions {
    struct tbd_mapped_region *table;
    size_t count;
    size_t capacity;
    struct tbd_arena arena; /* paths */
    struct tbd_region_path *paths[TBD_REGION_PATHS];
    struct tbd_range changed; /* since tbd_regions_forget_changes(): it includes all changes */
    uint64_t changes;         /* how many there were */
};

/* What the processor makes of a protection: memory that can be written can be read. */
static inline uint32_t tbd_region_prot(uint64_t prot)
{
    return (uint32_t)(prot & (PROT_READ | PROT_WRITE | PROT_EXEC)) |
           (prot & PROT_WRITE ? (uint32_t)PROT_READ : 0);
}

bool tbd_regions_init(struct tbd_regions *regions);
/* Makes the table empty. */
void tbd_regions_clear(struct tbd_regions *regions);
/* Adds a new mapping, which replaces all others in its range.  False: the table is full. */
bool tbd_regions_add(struct tbd_regions *regions, const struct tbd_msg_region *map,
                     const char *path);
bool tbd_regions_remove(struct tbd_regions *regions, uint64_t start, uint64_t end);
bool tbd_regions_protect(struct tbd_regions *regions, uint64_t start, uint64_t end, uint32_t prot);

void tbd_regions_forget_changes(struct tbd_regions *regions);

/* The region that holds `address`; NULL if none. */
struct tbd_mapped_region *tbd_regions_find(const struct tbd_regions *regions, uint64_t address);
/* Index of the first region that ends after `address`. */
size_t tbd_regions_lower(const struct tbd_regions *regions, uint64_t address);
/* Is any byte of [start, end) in a region with one of these TBD_REGION_* flags? */
bool tbd_regions_any(const struct tbd_regions *regions, uint64_t start, uint64_t end,
                     uint32_t flags);
/* Do pages of [start, end) share cells of the touch map (base/layout.h) with pages of other readable
 * regions, or with each other? */
bool tbd_regions_folds(const struct tbd_regions *regions, uint64_t start, uint64_t end);
/* The highest free range of this size below an address, outside the engine's; 0 if there is none. */
uint64_t tbd_regions_gap(const struct tbd_regions *regions, uint64_t bytes, uint64_t below);
/* Can tbd_regions_folds() be true of any region?  Takes one pass over the table. */
bool tbd_regions_any_folds(const struct tbd_regions *regions);
/* Is every byte of [start, end) in a region with this protection? */
bool tbd_regions_allow(const struct tbd_regions *regions, uint64_t start, uint64_t end,
                       uint32_t prot);
/* Is any byte of [start, end) in a region with PROT_EXEC? */
bool tbd_regions_has_code(const struct tbd_regions *regions, uint64_t start, uint64_t end);

#endif
