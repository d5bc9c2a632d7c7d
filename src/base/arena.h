// SPDX-License-Identifier: MIT
/* arena.h - memory without malloc: bump allocation over a reserved range of address space
 *
 * An arena reserves `bytes` of address space when it is made (MAP_NORESERVE: pages cost nothing
 * until touched) and hands it out in order; nothing is freed one by one, an arena is rewound to a
 * mark.  In the engine all arenas lie in [TBD_ARENAS_BASE, TBD_STREAM_BASE), in the same
 * order in play and in replay; in ordinary processes the kernel chooses.
 * Contexts: BOOT, APP. */
#ifndef TBD_BASE_ARENA_H
#define TBD_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tbd_arena {
    uint8_t *start;
    uint8_t *at;
    uint8_t *end;
};

/* False if the address space cannot be reserved; the arena is then empty. */
bool tbd_arena_init(struct tbd_arena *arena, size_t bytes);
/* Memory that was never used before is zero; after a rewind it is not.  NULL when the arena is
 * full.  `align` is a power of two. */
void *tbd_arena_alloc(struct tbd_arena *arena, size_t bytes, size_t align);

static inline uint8_t *tbd_arena_mark(const struct tbd_arena *arena)
{
    return arena->at;
}
static inline void tbd_arena_rewind(struct tbd_arena *arena, uint8_t *mark)
{
    arena->at = mark;
}
/* Frees the pages and starts again: everything is zero as at first. */
void tbd_arena_reset(struct tbd_arena *arena);

#endif
