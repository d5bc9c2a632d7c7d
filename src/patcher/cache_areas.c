// SPDX-License-Identifier: MIT
/* cache_areas.c - where translated blocks are put: near the program's code (CACHE-1) */
#include "patcher/cache_private.h"

#include "base/binary_search.h"
#include "patcher/fixed.h"

enum {
    AREA_BYTES = 64 << 20,
    LEAST_AREA_BYTES = 1 << 20,
};

#define NEIGHBOURHOOD (128ull << 20) /* most data that code reaches by [rip + x] is this near */

void tbd_cache_reset_area(struct tbd_patch_area *area)
{
    struct tbd_emit e = { .at = (uint8_t *)(uintptr_t)area->base,
                          .end = (uint8_t *)(uintptr_t)area->end };

    for (uint32_t kind = 0; kind < TBD_EXIT_KINDS; kind++) {
        area->head[kind] = tbd_emit_pc(&e);
        tbd_emit_store_gs_imm(&e, TBD_THREAD_GS(exit_kind), kind);
        tbd_emit_jmp_far(&e, (uint64_t)(uintptr_t)tbd_fixed_exit);
    }
    area->miss = tbd_emit_pc(&e);
    tbd_emit_jmp_far(&e, (uint64_t)(uintptr_t)tbd_fixed_miss);
    area->hot = (tbd_emit_pc(&e) + 63) & ~63ull;
    area->cold = area->end;
    area->count = 0;
}

/* Start of the program's memory that code at `pc` probably refers to. */
static uint64_t neighbourhood_start(uint64_t pc)
{
    return pc > NEIGHBOURHOOD ? pc - NEIGHBOURHOOD : 0;
}

static bool has_space(const struct tbd_patch_area *area)
{
    return area->cold - area->hot > TBD_CACHE_BLOCK_SPACE + TBD_CACHE_STUB_SPACE;
}

/* Operands that are out of reach there go through a scratch register. */
static struct tbd_patch_area *any_area_with_space(void)
{
    for (uint32_t n = 0; n < tbd_cache.area_count; n++)
        if (has_space(&tbd_cache.area[n]))
            return &tbd_cache.area[n];
    return NULL;
}

/* Within reach of the code at `pc`, if possible of its neighbourhood, too.  A program that has taken nearly all addresses
 * there (growing_stacks.c) leaves space for a smaller area. */
static uint64_t reserve_near(const struct tbd_patcher_callbacks *callbacks, uint64_t pc,
                             uint64_t *bytes)
{
    uint64_t base = callbacks->reserve_area(neighbourhood_start(pc), pc + NEIGHBOURHOOD, *bytes);

    if (!base)
        base = callbacks->reserve_area(pc, pc + 1, *bytes);
    while (!base && *bytes / 4 >= LEAST_AREA_BYTES) {
        *bytes /= 4;
        base = callbacks->reserve_area(pc, pc + 1, *bytes);
    }
    return base;
}

static struct tbd_patch_area *area_new(const struct tbd_patcher_callbacks *callbacks,
                                       const struct tbd_codegen_config *config, uint64_t pc)
{
    struct tbd_patch_area *area = &tbd_cache.area[tbd_cache.area_count];
    uint64_t whole = config->area_bytes ? config->area_bytes : AREA_BYTES;
    uint64_t bytes = whole;
    uint64_t base;

    if (tbd_cache.area_count == TBD_CACHE_AREAS)
        return NULL;
    base = reserve_near(callbacks, pc, &bytes);
    if (!base) {
        if (any_area_with_space())
            return NULL;
        bytes = whole;
        base = callbacks->reserve_area(0, 0, bytes);
    }
    if (!base)
        return NULL;
    area->base = base;
    area->end = base + bytes;
    tbd_cache_reset_area(area);
    /* signal handlers of other threads look at the areas */
    __atomic_store_n(&tbd_cache.area_count, tbd_cache.area_count + 1, __ATOMIC_RELEASE);
    return area;
}

bool tbd_cache_area_serves(const struct tbd_patch_area *area, uint64_t pc)
{
    const int64_t reach = 2ll << 30;
    int64_t up = (int64_t)(area->end - neighbourhood_start(pc));
    int64_t down = (int64_t)(pc + NEIGHBOURHOOD - area->base);

    return up <= reach && down <= reach && has_space(area);
}

/* No code of the program lies in the kernel's half: a block there is a fault, and may be in any
 * area. */
static uint64_t reachable(uint64_t pc)
{
    return pc < TBD_USER_END || !tbd_cache.area_count ? pc : tbd_cache.area[0].base;
}

struct tbd_patch_area *tbd_cache_area_for(const struct tbd_patcher_callbacks *callbacks,
                                          const struct tbd_codegen_config *config, uint64_t at)
{
    struct tbd_patch_area *area;
    uint64_t pc = reachable(at);

    if (tbd_cache.last_area < tbd_cache.area_count &&
        tbd_cache_area_serves(&tbd_cache.area[tbd_cache.last_area], pc))
        return &tbd_cache.area[tbd_cache.last_area];
    for (uint32_t n = 0; n < tbd_cache.area_count; n++)
        if (tbd_cache_area_serves(&tbd_cache.area[n], pc)) {
            tbd_cache.last_area = n;
            return &tbd_cache.area[n];
        }
    area = area_new(callbacks, config, pc);
    if (!area)
        area = any_area_with_space();
    if (area)
        tbd_cache.last_area = (uint32_t)(area - tbd_cache.area);
    return area;
}

const struct tbd_patch_area *tbd_cache_area_of(uint64_t cache_pc)
{
    for (uint32_t n = 0; n < tbd_cache.area_count; n++)
        if (cache_pc >= tbd_cache.area[n].base && cache_pc < tbd_cache.area[n].end)
            return &tbd_cache.area[n];
    return NULL;
}

struct tbd_block_code *tbd_cache_block_at(uint64_t cache_pc)
{
    const struct tbd_patch_area *area = tbd_cache_area_of(cache_pc);
    size_t found;

    if (!area)
        return NULL;
    found = TBD_COUNT_BEFORE(i, area->count, tbd_cache.block[area->block[i]].cache_end <= cache_pc);
    if (found == area->count || tbd_cache.block[area->block[found]].cache_start > cache_pc)
        return NULL;
    return &tbd_cache.block[area->block[found]];
}
