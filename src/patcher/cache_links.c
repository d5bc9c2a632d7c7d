// SPDX-License-Identifier: MIT
/* cache_links.c - which block an exit leads to: a jump, a stub, or nothing between them (CACHE-3,
 * CACHE-4) */
#include "patcher/cache_private.h"

#include "base/assert.h"
#include "patcher/fixed.h"

/* ---- stubs ---- */

void tbd_cache_emit_stub(struct tbd_exit_site *site)
{
    struct tbd_emit e = { .at = (uint8_t *)(uintptr_t)site->stub,
                          .end = (uint8_t *)(uintptr_t)site->stub + TBD_CACHE_STUB_BYTES };

    tbd_emit_store_gs_imm(&e, TBD_THREAD_GS(exit_arg), (uint32_t)(site - tbd_cache.site));
    tbd_emit_jmp(&e, tbd_cache.area[site->area].head[TBD_EXIT_DIRECT]);
}

uint64_t tbd_cache_stub_target(uint64_t cache_pc)
{
    for (uint32_t n = 0; n < tbd_cache.site_count; n++)
        if (cache_pc >= tbd_cache.site[n].stub &&
            cache_pc < tbd_cache.site[n].stub + TBD_CACHE_STUB_BYTES)
            return tbd_cache.site[n].target;
    return 0;
}

/* ---- links ---- */

/* The one function that changes code that has run.  The displacement does not straddle a cache line
 * (emit.c), so the processor sees the whole store or none of it, and other processors do, too; they see what
 * the new target was made of before it. */
void tbd_cache_set_rel32(uint64_t rel32, uint64_t target)
{
    uint32_t distance = (uint32_t)(target - (rel32 + 4));

    __atomic_store_n((uint32_t *)(uintptr_t)rel32, distance, __ATOMIC_RELEASE);
}

static bool in_reach(uint64_t rel32, uint64_t target)
{
    int64_t distance = (int64_t)(target - (rel32 + 4));

    return distance == (int32_t)distance;
}

void tbd_cache_join(struct tbd_exit_site *site, struct tbd_block_code *block)
{
    site->linked = tbd_cache_index(block);
    site->next = block->incoming;
    block->incoming = (uint32_t)(site - tbd_cache.site);
}

/* The exit's stub becomes a far jump to a block in an area out of reach. */
static void stub_goes_to(struct tbd_exit_site *site, const struct tbd_block_code *block)
{
    struct tbd_emit e = { .at = (uint8_t *)(uintptr_t)site->stub,
                          .end = (uint8_t *)(uintptr_t)site->stub + TBD_CACHE_STUB_BYTES };

    tbd_emit_jmp_far(&e, block->entry);
}

void tbd_cache_link(struct tbd_exit_site *site, struct tbd_block_code *block)
{
    bool is_near = in_reach(site->rel32, block->entry);

    if (site->linked != TBD_NO_INDEX || (tbd_cache.is_free && !is_near))
        return;
    tbd_cache_join(site, block);
    if (is_near)
        tbd_cache_set_rel32(site->rel32, block->entry);
    else
        stub_goes_to(site, block);
}

/* Control falls through into the dead block: its first bytes become the omitted jump (CACHE-4). */
static void put_jump_back(struct tbd_exit_site *site, const struct tbd_block_code *dead)
{
    TBD_INVARIANT("CACHE-4", !dead->live && dead->entry == dead->cache_start);
    *(uint8_t *)(uintptr_t)dead->cache_start = 0xe9;
    site->rel32 = dead->cache_start + 1;
}

void tbd_cache_unlink_incoming(struct tbd_block_code *block)
{
    for (uint32_t n = block->incoming; n != TBD_NO_INDEX; n = tbd_cache.site[n].next) {
        TBD_INVARIANT("CACHE-3", tbd_cache.site[n].linked == tbd_cache_index(block));
        tbd_cache.site[n].linked = TBD_NO_INDEX;
        if (!tbd_cache.site[n].rel32 && tbd_cache.is_shared)
            continue; /* the block before it is dead, too, or all are being forgotten (CACHE-5) */
        if (!tbd_cache.site[n].rel32)
            put_jump_back(&tbd_cache.site[n], block);
        if (!in_reach(tbd_cache.site[n].rel32, block->entry))
            tbd_cache_emit_stub(&tbd_cache.site[n]);
        tbd_cache_set_rel32(tbd_cache.site[n].rel32, tbd_cache.site[n].stub);
    }
    block->incoming = TBD_NO_INDEX;
}

void tbd_cache_leave_list(uint32_t index)
{
    struct tbd_exit_site *site = &tbd_cache.site[index];
    uint32_t *at;

    if (site->linked == TBD_NO_INDEX)
        return;
    at = &tbd_cache.block[site->linked].incoming;
    while (*at != index)
        at = &tbd_cache.site[*at].next;
    *at = site->next;
    site->linked = TBD_NO_INDEX;
}

/* ---- falling through into the next block ---- */

static uint64_t where_it_leads(const struct tbd_exit_site *site)
{
    bool near =
        site->linked != TBD_NO_INDEX && in_reach(site->rel32, tbd_cache.block[site->linked].entry);

    return near ? tbd_cache.block[site->linked].entry : site->stub;
}

static bool ends_with_jcc_and_jmp(const struct tbd_block_code *block)
{
    return block->exit_count == 2 &&
           *(const uint8_t *)(uintptr_t)(tbd_cache.site[block->first_exit].rel32 - 2) == 0x0f;
}

/* The taken side of jcc will follow: jcc gets the opposite condition and the other side's
 * target. */
static void turn_around(struct tbd_exit_site *taken, struct tbd_exit_site *other)
{
    *(uint8_t *)(uintptr_t)(taken->rel32 - 1) ^= 1;
    tbd_cache_set_rel32(taken->rel32, where_it_leads(other));
    other->rel32 = taken->rel32;
}

/* Can a jump lie where it begins once it is dead (put_jump_back)?  What is still stored to then are its own displacements. */
static bool has_space_for_jump(const struct tbd_block_code *block, uint64_t end)
{
    const struct tbd_exit_site *first = &tbd_cache.site[block->first_exit];

    return (block->exit_count > 1 ? first->rel32 : end) >= block->cache_start + TBD_JUMP_BYTES;
}

/* The last block of an area gives up its last jump, so that the block made next follows it
 * (CACHE-4). */
bool tbd_cache_open_tail(struct tbd_patch_area *area, struct tbd_exit_site *site)
{
    struct tbd_block_code *block = &tbd_cache.block[site->block];
    struct tbd_exit_site *last = &tbd_cache.site[block->first_exit + block->exit_count - 1u];
    uint64_t jump = last->rel32 - 1;

    if (tbd_cache.is_shared || !area->count || area->block[area->count - 1] != site->block ||
        !block->live || !last->rel32 || area->hot != ((block->cache_end + 15) & ~15ull) ||
        jump + TBD_JUMP_BYTES != block->cache_end || !has_space_for_jump(block, jump))
        return false;
    if (site != last && !ends_with_jcc_and_jmp(block))
        return false;
    if (site != last)
        turn_around(site, last);
    site->rel32 = 0;
    block->cache_end = jump;
    area->hot = jump;
    return true;
}
