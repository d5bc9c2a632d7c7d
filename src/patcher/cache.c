// SPDX-License-Identifier: MIT
/* cache.c - translated blocks: where they are, how they are found, how they are joined
 *
 * Keeps C1-C3 of cache.h.  One thread at a time runs here (the baton); signal handlers only read
 * (tbd_cache_area_of, tbd_cache_block_at, tbd_cache_dry_run), and they interrupt translated code,
 * not this file.
 *
 * The map from start to block and the one from (start, code) to id are open-addressing tables that
 * double in place: address space is reserved for the largest, pages cost nothing until used.
 */
#include "patcher/cache.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/search.h"
#include "base/sys.h"
#include "patcher/fixed.h"

enum {
    MAX_AREAS = 64,
    MAX_THREADS = 1024,
    MAX_BLOCKS = 1 << 20,
    MAX_SITES = 1 << 21,
    MAX_IDS = 1 << 22,
    FIRST_SLOTS = 1 << 14,
    PAGE_SLOTS = 1 << 16,
    AREA_BYTES = 64 << 20,
    BLOCK_ROOM = 32 << 10, /* no block's code is longer */
    STUB_BYTES = 24,
    STUB_ROOM = 256,
};

#define NEIGHBOURHOOD (128ull << 20) /* data that code reaches by [rip + x] is this near, mostly */

struct known_id {
    uint64_t start;
    uint64_t code_hash;
    uint32_t id;
    uint32_t code_bytes;
    uint8_t end; /* the same bytes may end in different ways (patcher/singles.h) */
};

/* index + 1 into an array, 0 = empty; lives in the cache arena. */
struct table {
    uint32_t *slot;
    uint32_t slots; /* power of two */
    uint32_t used;
};

static struct {
    struct tbd_block_code *block;
    struct tbd_exit_site *site;
    struct known_id *id;
    struct table map;      /* of blocks by start */
    struct table ids;      /* of ids by start and code */
    uint16_t *page_blocks; /* how many blocks were made on pages with this hash; saturates */
    uint32_t block_count;
    uint32_t site_count;
    uint32_t id_count;
    struct tbd_area area[MAX_AREAS];
    uint32_t area_count;
    uint32_t last_area; /* where the last block was put */
    struct tbd_thread *thread[MAX_THREADS];
    uint32_t thread_count;
    struct tbd_cut cut; /* of the block being made */
} cache;

static struct tbd_arena arena;

static uint64_t hash_address(uint64_t a)
{
    return tbd_hash64_mix(a * 0x9e3779b97f4a7c15ull);
}

/* ---- tables ---- */

void tbd_cache_count(uint32_t *out_blocks, uint32_t *out_areas)
{
    *out_blocks = cache.block_count;
    *out_areas = cache.area_count;
}

struct tbd_block_code *tbd_cache_block(uint32_t index)
{
    return &cache.block[index];
}

struct tbd_exit_site *tbd_cache_site(uint32_t index)
{
    return &cache.site[index];
}

uint32_t tbd_cache_index(const struct tbd_block_code *block)
{
    return (uint32_t)(block - cache.block);
}

static uint32_t *map_slot(uint64_t pc)
{
    uint32_t n = (uint32_t)hash_address(pc) & (cache.map.slots - 1);

    while (cache.map.slot[n] && cache.block[cache.map.slot[n] - 1].start != pc)
        n = (n + 1) & (cache.map.slots - 1);
    return &cache.map.slot[n];
}

struct tbd_block_code *tbd_cache_find(uint64_t pc)
{
    uint32_t index = *map_slot(pc);

    return index && cache.block[index - 1].live ? &cache.block[index - 1] : NULL;
}

/* Private anonymous memory reads as zero after it was given back. */
static void empty_table(struct table *table)
{
    if (table->used)
        tbd_sys_madvise(tbd_sys_pointer(table->slot), (uint64_t)table->slots * 4,
                        4 /* MADV_DONTNEED */);
    table->used = 0;
}

static void map_insert(uint32_t index);

static void map_grow(void)
{
    empty_table(&cache.map);
    cache.map.slots *= 2;
    for (uint32_t n = 0; n < cache.block_count; n++)
        if (!cache.block[n].is_stop)
            map_insert(n);
}

/* A dead block's slot stays, for its start; the next block there takes it over. */
static void map_insert(uint32_t index)
{
    uint32_t *slot;

    if (cache.map.used >= cache.map.slots / 2)
        map_grow();
    slot = map_slot(cache.block[index].start);
    if (!*slot)
        cache.map.used++;
    *slot = index + 1;
}

static bool is_id_of(const struct known_id *id, const struct known_id *key)
{
    return id->start == key->start && id->code_hash == key->code_hash &&
           id->code_bytes == key->code_bytes && id->end == key->end;
}

static uint32_t *id_slot(const struct known_id *key)
{
    uint32_t n = (uint32_t)hash_address(key->start ^ key->code_hash) & (cache.ids.slots - 1);

    while (cache.ids.slot[n] && !is_id_of(&cache.id[cache.ids.slot[n] - 1], key))
        n = (n + 1) & (cache.ids.slots - 1);
    return &cache.ids.slot[n];
}

static void ids_grow(void)
{
    empty_table(&cache.ids);
    cache.ids.slots *= 2;
    for (uint32_t n = 0; n < cache.id_count; n++) {
        *id_slot(&cache.id[n]) = n + 1;
        cache.ids.used++;
    }
}

static uint32_t new_id(const struct known_id *key, uint32_t id)
{
    if (cache.id_count == MAX_IDS)
        tbd_cache_forget_ids();
    if (cache.ids.used >= cache.ids.slots / 2)
        ids_grow();
    cache.id[cache.id_count] = *key;
    cache.id[cache.id_count].id = id;
    *id_slot(key) = ++cache.id_count;
    cache.ids.used++;
    return id;
}

static uint32_t id_of(const struct tbd_cut *cut, const struct tbd_patcher_callbacks *callbacks)
{
    struct known_id key = { .start = cut->def.start,
                            .code_hash = cut->def.code_hash,
                            .code_bytes = cut->def.code_bytes,
                            .end = cut->def.end };
    uint32_t known = *id_slot(&key);

    if (known)
        return cache.id[known - 1].id;
    return new_id(
        &key, callbacks->define(&cut->def, cut->op, (const uint8_t *)(uintptr_t)cut->def.start));
}

static void *table_alloc(size_t count, size_t bytes)
{
    return tbd_arena_alloc(&arena, count * bytes, TBD_PAGE_SIZE);
}

static bool make_tables(void)
{
    cache.block = table_alloc(MAX_BLOCKS, sizeof(*cache.block));
    cache.site = table_alloc(MAX_SITES, sizeof(*cache.site));
    cache.id = table_alloc(MAX_IDS, sizeof(*cache.id));
    cache.map = (struct table){ .slot = table_alloc(4 * MAX_BLOCKS, 4), .slots = FIRST_SLOTS };
    cache.ids = (struct table){ .slot = table_alloc(4 * MAX_IDS, 4), .slots = FIRST_SLOTS };
    cache.page_blocks = table_alloc(PAGE_SLOTS, sizeof(*cache.page_blocks));
    for (uint32_t n = 0; n < MAX_AREAS; n++)
        cache.area[n].block = table_alloc(MAX_BLOCKS, sizeof(uint32_t));
    return cache.block && cache.area[MAX_AREAS - 1].block;
}

bool tbd_cache_init(void)
{
    size_t tables = MAX_BLOCKS * (sizeof(*cache.block) + 16) + MAX_SITES * sizeof(*cache.site) +
                    MAX_IDS * (sizeof(*cache.id) + 16) + PAGE_SLOTS * sizeof(*cache.page_blocks);

    return cache.block ||
           (tbd_arena_init(&arena,
                           tables + MAX_AREAS * MAX_BLOCKS * sizeof(uint32_t) + (1 << 20)) &&
            make_tables());
}

/* ---- areas ---- */

static void area_reset(struct tbd_area *area)
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

/* The program's bytes that code of `pc` is expected to name. */
static uint64_t neighbourhood_start(uint64_t pc)
{
    return pc > NEIGHBOURHOOD ? pc - NEIGHBOURHOOD : 0;
}

static struct tbd_area *area_new(const struct tbd_patcher_callbacks *callbacks,
                                 const struct tbd_codegen_config *config, uint64_t pc)
{
    struct tbd_area *area = &cache.area[cache.area_count];
    uint64_t lo = neighbourhood_start(pc);
    uint64_t bytes = config->area_bytes ? config->area_bytes : AREA_BYTES;
    uint64_t base;

    if (cache.area_count == MAX_AREAS)
        return NULL;
    base = callbacks->reserve_area(lo, pc + NEIGHBOURHOOD, bytes);
    if (!base)
        base = callbacks->reserve_area(pc, pc + 1, bytes);
    if (!base)
        return NULL;
    area->base = base;
    area->end = base + bytes;
    area_reset(area);
    cache.area_count++;
    return area;
}

static bool has_room(const struct tbd_area *area)
{
    return area->cold - area->hot > BLOCK_ROOM + STUB_ROOM;
}

static bool area_serves(const struct tbd_area *area, uint64_t pc)
{
    const int64_t reach = 2ll << 30;
    int64_t up = (int64_t)(area->end - neighbourhood_start(pc));
    int64_t down = (int64_t)(pc + NEIGHBOURHOOD - area->base);

    return up <= reach && down <= reach && has_room(area);
}

static struct tbd_area *area_for(const struct tbd_patcher_callbacks *callbacks,
                                 const struct tbd_codegen_config *config, uint64_t pc)
{
    struct tbd_area *area;

    if (cache.last_area < cache.area_count && area_serves(&cache.area[cache.last_area], pc))
        return &cache.area[cache.last_area];
    for (uint32_t n = 0; n < cache.area_count; n++)
        if (area_serves(&cache.area[n], pc)) {
            cache.last_area = n;
            return &cache.area[n];
        }
    area = area_new(callbacks, config, pc);
    for (uint32_t n = 0; !area && n < cache.area_count; n++)
        if (has_room(&cache.area[n]))
            area = &cache.area[n]; /* out of reach: operands go through a scratch register */
    if (area)
        cache.last_area = (uint32_t)(area - cache.area);
    return area;
}

const struct tbd_area *tbd_cache_area_of(uint64_t cache_pc)
{
    for (uint32_t n = 0; n < cache.area_count; n++)
        if (cache_pc >= cache.area[n].base && cache_pc < cache.area[n].end)
            return &cache.area[n];
    return NULL;
}

struct tbd_block_code *tbd_cache_block_at(uint64_t cache_pc)
{
    const struct tbd_area *area = tbd_cache_area_of(cache_pc);
    size_t found;

    if (!area)
        return NULL;
    found = TBD_COUNT_BEFORE(i, area->count, cache.block[area->block[i]].cache_end <= cache_pc);
    if (found == area->count || cache.block[area->block[found]].cache_start > cache_pc)
        return NULL;
    return &cache.block[area->block[found]];
}

/* ---- links ---- */

/* The one function that changes code that has run.  The displacement does not straddle a cache line
 * (emit.c), so the store is seen whole or not at all; one thread at a time runs. */
static void set_rel32(uint64_t rel32, uint64_t target)
{
    uint32_t distance = (uint32_t)(target - (rel32 + 4));

    __atomic_store_n((uint32_t *)(uintptr_t)rel32, distance, __ATOMIC_RELAXED);
}

static void stub_emit(struct tbd_exit_site *site);

static bool in_reach(uint64_t rel32, uint64_t target)
{
    int64_t distance = (int64_t)(target - (rel32 + 4));

    return distance == (int32_t)distance;
}

static void join(struct tbd_exit_site *site, struct tbd_block_code *block)
{
    site->linked = tbd_cache_index(block);
    site->next = block->incoming;
    block->incoming = (uint32_t)(site - cache.site);
}

/* The stub of an exit to a block in an area too far away becomes the jump there. */
static void stub_goes_to(struct tbd_exit_site *site, const struct tbd_block_code *block)
{
    struct tbd_emit e = { .at = (uint8_t *)(uintptr_t)site->stub,
                          .end = (uint8_t *)(uintptr_t)site->stub + STUB_BYTES };

    tbd_emit_jmp_far(&e, block->entry);
}

void tbd_cache_link(struct tbd_exit_site *site, struct tbd_block_code *block)
{
    if (site->linked != TBD_NO_INDEX)
        return;
    join(site, block);
    if (in_reach(site->rel32, block->entry))
        set_rel32(site->rel32, block->entry);
    else
        stub_goes_to(site, block);
}

/* Control falls into the dead block: its first bytes become the jump that was left out (C4). */
static void put_jump_back(struct tbd_exit_site *site, const struct tbd_block_code *dead)
{
    *(uint8_t *)(uintptr_t)dead->cache_start = 0xe9;
    site->rel32 = dead->cache_start + 1;
}

static void unlink_incoming(struct tbd_block_code *block)
{
    for (uint32_t n = block->incoming; n != TBD_NO_INDEX; n = cache.site[n].next) {
        if (!cache.site[n].rel32)
            put_jump_back(&cache.site[n], block);
        if (!in_reach(cache.site[n].rel32, block->entry))
            stub_emit(&cache.site[n]);
        set_rel32(cache.site[n].rel32, cache.site[n].stub);
        cache.site[n].linked = TBD_NO_INDEX;
    }
    block->incoming = TBD_NO_INDEX;
}

static void leave_list(uint32_t index)
{
    struct tbd_exit_site *site = &cache.site[index];
    uint32_t *at;

    if (site->linked == TBD_NO_INDEX)
        return;
    at = &cache.block[site->linked].incoming;
    while (*at != index)
        at = &cache.site[*at].next;
    *at = site->next;
    site->linked = TBD_NO_INDEX;
}

/* ---- falling into the next block ---- */

static uint64_t where_it_leads(const struct tbd_exit_site *site)
{
    bool near =
        site->linked != TBD_NO_INDEX && in_reach(site->rel32, cache.block[site->linked].entry);

    return near ? cache.block[site->linked].entry : site->stub;
}

static bool ends_with_jcc_and_jmp(const struct tbd_block_code *block)
{
    return block->exit_count == 2 &&
           *(const uint8_t *)(uintptr_t)(cache.site[block->first_exit].rel32 - 2) == 0x0f;
}

/* The taken side of jcc is to follow: jcc gets the opposite condition and the other side's target.
 * */
static void turn_around(struct tbd_exit_site *taken, struct tbd_exit_site *other)
{
    *(uint8_t *)(uintptr_t)(taken->rel32 - 1) ^= 1;
    set_rel32(taken->rel32, where_it_leads(other));
    other->rel32 = taken->rel32;
}

/* The last block of an area gives up its last jump, so that the block made next follows it (C4). */
static bool open_tail(struct tbd_area *area, struct tbd_exit_site *site)
{
    struct tbd_block_code *block = &cache.block[site->block];
    struct tbd_exit_site *last = &cache.site[block->first_exit + block->exit_count - 1u];
    uint64_t jump = last->rel32 - 1;

    if (!area->count || area->block[area->count - 1] != site->block || !block->live ||
        !last->rel32 || area->hot != ((block->cache_end + 15) & ~15ull) ||
        block->tail < block->cache_start + 8)
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

/* ---- making ---- */

static void stub_emit(struct tbd_exit_site *site)
{
    struct tbd_emit e = { .at = (uint8_t *)(uintptr_t)site->stub,
                          .end = (uint8_t *)(uintptr_t)site->stub + STUB_BYTES };

    tbd_emit_store_gs_imm(&e, TBD_THREAD_GS(exit_arg), (uint32_t)(site - cache.site));
    tbd_emit_jmp(&e, cache.area[site->area].head[TBD_EXIT_DIRECT]);
}

/* mov rcx, r10; jmp miss: gives rcx back and leaves. */
static void mismatch_emit(struct tbd_area *area, uint64_t rel32)
{
    struct tbd_emit e;

    area->cold -= STUB_BYTES;
    e = (struct tbd_emit){ .at = (uint8_t *)(uintptr_t)area->cold,
                           .end = (uint8_t *)(uintptr_t)area->cold + STUB_BYTES };
    set_rel32(rel32, area->cold);
    tbd_emit_mov(&e, TBD_RCX, TBD_R10);
    tbd_emit_jmp(&e, area->miss);
}

static uint64_t place_in_area(const struct tbd_translation *t, const uint8_t *in_buffer)
{
    return (uint64_t)((int64_t)(uintptr_t)in_buffer + t->e.delta);
}

static void make_exits(struct tbd_area *area, const struct tbd_translation *t,
                       struct tbd_block_code *block)
{
    block->first_exit = cache.site_count;
    block->exit_count = (uint8_t)t->exit_count;
    for (uint32_t n = 0; n < t->exit_count; n++) {
        struct tbd_exit_site *site = &cache.site[cache.site_count++];

        *site = (struct tbd_exit_site){ .rel32 = place_in_area(t, t->exit[n].rel32),
                                        .target = t->exit[n].target,
                                        .block = tbd_cache_index(block),
                                        .linked = TBD_NO_INDEX,
                                        .area = (uint32_t)(area - cache.area),
                                        .next = TBD_NO_INDEX };
        area->cold -= STUB_BYTES;
        site->stub = area->cold;
        stub_emit(site);
        set_rel32(site->rel32, site->stub);
    }
    if (t->mismatch)
        mismatch_emit(area, place_in_area(t, t->mismatch));
}

static void fill_block(struct tbd_block_code *block, const struct tbd_cut *cut, uint32_t id)
{
    const struct tbd_insn *last = cut->count ? &cut->insn[cut->count - 1] : NULL;

    *block = (struct tbd_block_code){
        .start = cut->def.start,
        .id = id,
        .incoming = TBD_NO_INDEX,
        .code_bytes = cut->def.code_bytes,
        .last_insn = last ? (uint16_t)(last->pc - cut->def.start) : 0,
        .last_bytes = last ? last->length : 0,
        .end = cut->def.end,
        .special = last ? last->special : 0,
        .live = true,
    };
}

static void set_up(struct tbd_translation *t, const struct tbd_area *area,
                   const struct tbd_cut *cut, const struct tbd_codegen_config *config,
                   const struct tbd_block_code *block)
{
    *t = (struct tbd_translation){ .cut = cut,
                                   .head = area->head,
                                   .hook_set = config->hook_set,
                                   .id = block->id,
                                   .block = tbd_cache_index(block),
                                   .stop = block->is_stop };
}

static void count_pages(const struct tbd_block_code *block)
{
    uint64_t first = block->start >> TBD_PAGE_SHIFT;
    uint64_t last =
        (block->start + (block->code_bytes ? block->code_bytes - 1 : 0)) >> TBD_PAGE_SHIFT;

    for (uint64_t page = first; page <= last; page++) {
        uint16_t *count = &cache.page_blocks[hash_address(page) & (PAGE_SLOTS - 1)];

        if (*count != UINT16_MAX)
            (*count)++;
    }
}

static void put_in_area(struct tbd_area *area, struct tbd_block_code *block,
                        const struct tbd_translation *t)
{
    block->cache_start = area->hot;
    block->cache_end = tbd_emit_pc(&t->e);
    block->entry = t->entry;
    block->tail = t->tail;
    block->tagged = t->tagged ? t->tag : 0;
    area->block[area->count++] = tbd_cache_index(block);
    area->hot = (block->cache_end + 15) & ~15ull;
    make_exits(area, t, block);
}

struct cut_request {
    const struct tbd_patcher_callbacks *callbacks;
    const struct tbd_codegen_config *config;
    struct tbd_cut *cut;
    uint64_t pc;
};

static void cut_with_vectors(void *arg)
{
    struct cut_request *r = arg;

    tbd_cut_block(r->cut, r->callbacks, r->config, r->pc);
}

static bool is_full(void)
{
    return cache.block_count == MAX_BLOCKS || cache.site_count + 2 > MAX_SITES;
}

/* Emits cache.cut at area->hot. */
static bool emit_block(struct tbd_area *area, struct tbd_block_code *block,
                       const struct tbd_codegen_config *config, bool tagged)
{
    struct tbd_translation t;

    set_up(&t, area, &cache.cut, config, block);
    t.tagged = tagged;
    t.e = (struct tbd_emit){ .at = (uint8_t *)(uintptr_t)area->hot,
                             .end = (uint8_t *)(uintptr_t)area->hot + BLOCK_ROOM };
    tbd_translate(&t);
    if (t.e.overflow)
        return false;
    cache.block_count++;
    put_in_area(area, block, &t);
    count_pages(block);
    return true;
}

static void join_exit(const struct tbd_codegen_config *config, uint32_t after,
                      struct tbd_block_code *block)
{
    if (after != TBD_NO_INDEX && !cache.site[after].rel32)
        join(&cache.site[after], block);
    else if (after != TBD_NO_INDEX && config->link)
        tbd_cache_link(&cache.site[after], block);
}

struct tbd_block_code *tbd_cache_make(const struct tbd_patcher_callbacks *callbacks,
                                      const struct tbd_codegen_config *config,
                                      const struct tbd_make *make)
{
    struct cut_request request = { callbacks, config, &cache.cut, make->pc };
    struct tbd_area *area = area_for(callbacks, config, make->pc);
    struct tbd_block_code *block = &cache.block[cache.block_count];

    if (!area || is_full())
        return NULL;
    callbacks->with_vector_state(cut_with_vectors, &request);
    if (cache.cut.check_bytes && callbacks->looked)
        callbacks->looked((struct tbd_app_pc){ make->pc }, cache.cut.check_bytes);
    fill_block(block, &cache.cut, id_of(&cache.cut, callbacks));
    if (make->stop_insns) {
        tbd_cut_shorten(&cache.cut, make->stop_insns);
        fill_block(block, &cache.cut, block->id);
        block->is_stop = true;
        block->stop_insns = make->stop_insns;
    }
    if (make->after != TBD_NO_INDEX && config->link && !cache.cut.check_bytes)
        open_tail(area, &cache.site[make->after]);
    if (!emit_block(area, block, config, make->tagged))
        return NULL;
    if (!block->is_stop)
        map_insert(tbd_cache_index(block));
    join_exit(config, make->after, block);
    return block;
}

bool tbd_cache_add_tag(struct tbd_block_code *block)
{
    struct tbd_area *area = &cache.area[tbd_cache_area_of(block->entry) - cache.area];
    struct tbd_translation t = { .cut = NULL };
    uint64_t at = area->hot;

    if (area->cold - area->hot < STUB_ROOM + BLOCK_ROOM)
        return false;
    t.e = (struct tbd_emit){ .at = (uint8_t *)(uintptr_t)at,
                             .end = (uint8_t *)(uintptr_t)at + STUB_ROOM };
    tbd_translate_tag(&t, block->start);
    tbd_emit_jmp(&t.e, block->entry);
    area->hot = (tbd_emit_pc(&t.e) + 15) & ~15ull;
    mismatch_emit(area, place_in_area(&t, t.mismatch));
    block->tagged = at;
    return true;
}

/* ---- forgetting ---- */

static void clear_targets(struct tbd_thread *thread)
{
    for (uint32_t n = 0; n < TBD_IBL_ENTRIES; n++)
        thread->ibl[n] = (uint64_t)(uintptr_t)tbd_fixed_miss;
    for (uint32_t n = 0; n < TBD_SECOND_ENTRIES; n++)
        thread->second[n].minus_target = 1;
}

static struct tbd_second_target *second_of(struct tbd_thread *thread, uint64_t pc)
{
    return &thread->second[(pc >> TBD_SECOND_SHIFT) & (TBD_SECOND_ENTRIES - 1)];
}

/* Both tables: the first holds one target for each low half, the second catches what it drops. */
void tbd_cache_set_target(struct tbd_thread *thread, const struct tbd_block_code *block)
{
    thread->ibl[block->start & (TBD_IBL_ENTRIES - 1)] = block->tagged;
    *second_of(thread, block->start) =
        (struct tbd_second_target){ .minus_target = 0 - block->start, .entry = block->entry };
}

void tbd_cache_add_thread(struct tbd_thread *thread)
{
    for (uint32_t n = 0; n < cache.thread_count; n++)
        if (cache.thread[n] == thread)
            return;
    clear_targets(thread);
    if (cache.thread_count < MAX_THREADS)
        cache.thread[cache.thread_count++] = thread;
}

void tbd_cache_remove_thread(struct tbd_thread *thread)
{
    for (uint32_t n = 0; n < cache.thread_count; n++)
        if (cache.thread[n] == thread)
            cache.thread[n] = cache.thread[--cache.thread_count];
}

static void forget_target(const struct tbd_block_code *block)
{
    for (uint32_t n = 0; n < cache.thread_count; n++) {
        uint64_t *slot = &cache.thread[n]->ibl[block->start & (TBD_IBL_ENTRIES - 1)];

        if (*slot == block->tagged)
            *slot = (uint64_t)(uintptr_t)tbd_fixed_miss;
        if (second_of(cache.thread[n], block->start)->minus_target == 0 - block->start)
            second_of(cache.thread[n], block->start)->minus_target = 1;
    }
}

void tbd_cache_kill(struct tbd_block_code *block)
{
    if (!block->live)
        return;
    block->live = false;
    unlink_incoming(block);
    for (uint32_t n = 0; n < block->exit_count; n++)
        leave_list(block->first_exit + n);
    if (block->tagged)
        forget_target(block);
}

bool tbd_cache_has_blocks(uint64_t start, uint64_t end)
{
    uint64_t first = start >> TBD_PAGE_SHIFT;
    uint64_t last = (end - 1) >> TBD_PAGE_SHIFT;

    if (last - first >= PAGE_SLOTS)
        return true;
    for (uint64_t page = first; page <= last; page++)
        if (cache.page_blocks[hash_address(page) & (PAGE_SLOTS - 1)])
            return true;
    return false;
}

void tbd_cache_flush_range(uint64_t start, uint64_t end)
{
    if (start >= end || !tbd_cache_has_blocks(start, end))
        return;
    for (uint32_t n = 0; n < cache.block_count; n++) {
        struct tbd_block_code *block = &cache.block[n];
        uint64_t bytes = block->code_bytes ? block->code_bytes : 1;

        if (block->live && block->start < end && block->start + bytes > start)
            tbd_cache_kill(block);
    }
}

void tbd_cache_flush_all(void)
{
    for (uint32_t n = 0; n < cache.thread_count; n++)
        clear_targets(cache.thread[n]);
    if (!cache.block_count)
        return;
    empty_table(&cache.map);
    for (uint32_t n = 0; n < PAGE_SLOTS; n++)
        cache.page_blocks[n] = 0;
    for (uint32_t n = 0; n < cache.area_count; n++)
        area_reset(&cache.area[n]);
    cache.block_count = 0;
    cache.site_count = 0;
}

void tbd_cache_forget_ids(void)
{
    empty_table(&cache.ids);
    cache.id_count = 0;
}

uint64_t tbd_cache_stub_target(uint64_t cache_pc)
{
    for (uint32_t n = 0; n < cache.site_count; n++)
        if (cache_pc >= cache.site[n].stub && cache_pc < cache.site[n].stub + STUB_BYTES)
            return cache.site[n].target;
    return 0;
}

/* ---- dry runs ---- */

bool tbd_cache_dry_run(const struct tbd_patcher_callbacks *callbacks,
                       const struct tbd_codegen_config *config, const struct tbd_block_code *block,
                       struct tbd_watch *watch, struct tbd_cut *cut)
{
    static uint8_t buffer[BLOCK_ROOM];
    struct cut_request request = { callbacks, config, cut, block->start };
    const struct tbd_area *area = tbd_cache_area_of(block->cache_start);
    struct tbd_translation t;

    callbacks->with_vector_state(cut_with_vectors, &request);
    if (block->is_stop)
        tbd_cut_shorten(cut, block->stop_insns);
    set_up(&t, area, cut, config, block);
    t.watch = watch;
    t.tagged = block->tagged >= block->cache_start && block->tagged < block->cache_end;
    t.e = (struct tbd_emit){ .at = buffer,
                             .end = buffer + sizeof(buffer),
                             .delta = (int64_t)block->cache_start - (int64_t)(uintptr_t)buffer };
    tbd_translate(&t);
    watch->tail = t.tail;
    watch->first_exit_end = t.exit_count ? place_in_area(&t, t.exit[0].rel32) + 4 : 0;
    return tbd_emit_pc(&t.e) >= block->cache_end; /* its last jump may have been left out (C4) */
}
